//! What bounds a gRPC server on a unix socket, whichever service is behind it.
//!
//! Its clients are programs of others. So each has to begin to speak in time, an answer costs its place until it was
//! taken, and nobody fills the log. How many places there are, for whom, and what a request may take is for each server
//! to say: their clients are not the same ones.
//!
//! | type | what it bounds |
//! |---|---|
//! | [`Prompt`] | how long a connection may be silent before its first words |
//! | [`InTime`] | how long a request may take to come |
//! | [`Places`] | how many connections and requests there are, in all and of one user |
//! | [`Held`] | what answers hold that nobody takes: each keeps its place until then |
//! | [`Throttle`] | log lines about the same mischief |
//!
//! Both ends of a connection write less often with [`Gathered`], and who waits for a quick answer does so [`Awake`].
//!
//! And for its clients, [`trusted`]: whether who listens is who they mean; [`ShortPath`]: how they get there; and in what words a
//! supervisor that is stopping refuses, [`DRAINING`].

mod awake;
mod gathered;
mod held;
mod in_time;
mod path;
mod places;
mod prompt;
mod throttle;
mod trusted;

pub use awake::Awake;
pub use gathered::Gathered;
pub use held::Held;
pub use in_time::{BODY_WAIT, InTime, not_in_time};
pub use path::ShortPath;
pub use places::{Place, Places};
pub use prompt::{FIRST_WORDS_WAIT, Prompt};
pub use throttle::Throttle;
pub use trusted::{Stranger, trusted};

/// HTTP/2 frames of up to 1 MiB, on both ends of `host.sock`: with the default of 16 KiB a 64 KiB answer takes twice as long.
pub const FRAME_BYTES: u32 = 1 << 20;
/// What one stream, and one connection, may send ahead of being read: one whole request of the largest kind.
pub const WINDOW_BYTES: u32 = 2 << 20;

/// How the error of a supervisor that is stopping begins, with the code UNAVAILABLE. What gets it was not begun, so its client
/// may repeat it whatever it is.
pub const DRAINING: &str = "the supervisor is draining";
