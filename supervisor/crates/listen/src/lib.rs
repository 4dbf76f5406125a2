//! What bounds a gRPC server on a unix socket, whichever service is behind it.
//!
//! Its clients are programs of others. So each has to begin to speak in time, an answer costs its place until it was
//! taken, and nobody fills the log. How many places there are, for whom, and what a request may take is for each server
//! to say: their clients are not the same ones.
//!
//! | type | what it bounds |
//! |---|---|
//! | [`Prompt`] | how long a connection may be silent before its first words |
//! | [`Held`] | what answers hold that nobody takes: each keeps its place until then |
//! | [`Throttle`] | log lines about the same mischief |
//!
//! And for its clients, [`trusted`]: whether who listens is who they mean.

mod held;
mod prompt;
mod throttle;
mod trusted;

pub use held::Held;
pub use prompt::{FIRST_WORDS_WAIT, Prompt};
pub use throttle::Throttle;
pub use trusted::{Stranger, trusted};
