//! Limits for a gRPC server on a unix socket, independent of the service.
//!
//! The clients are foreign programs. So each has to start speaking in time, an answer holds its permit until
//! the client has received it, and clients cannot fill the log. The numbers are up to each server, since
//! their clients differ.
//!
//! | type | what it limits |
//! |---|---|
//! | [`Prompt`] | how long a new connection may be silent |
//! | [`InTime`] | how long a request's body may take |
//! | [`Places`] | how many connections and requests there are, in total and per user |
//! | [`Held`] | answers that the client does not receive: each holds its permit until then |
//! | [`Throttle`] | repeated log lines |
//!
//! Both ends of a connection combine small writes with [`Gathered`], and wait for fast answers with
//! [`Awake`].
//!
//! For clients: [`trusted`] checks who listens on a socket, [`ShortPath`] connects to long paths, and
//! [`DRAINING`] is the error of a supervisor that is stopping.

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
/// The flow control window of a stream, and of a connection: a whole request of the largest size.
pub const WINDOW_BYTES: u32 = 2 << 20;

/// Start of the error of a supervisor that is stopping, with the code UNAVAILABLE. The request was not
/// started, so its client may always repeat it.
pub const DRAINING: &str = "the supervisor is draining";
