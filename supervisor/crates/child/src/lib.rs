//! The common part of the supervisor's own child processes: `talon-state` and `talon-agent`.
//!
//! The supervisor holds the other end of such a process's standard input, which is a control socket: it sends
//! what to open and which clients to serve, and the process ends when it closes. The supervisor also reads
//! the log from the process's standard error.
//!
//! | module | contents |
//! |---|---|
//! | [`begin()`] | the main function |
//! | [`log`] | JSON lines on stderr |
//! | [`signals`] | signal handling |
//! | [`end`] | the exit of the process, as the supervisor sees it |
//! | [`handed`] | descriptors that came with a control message, checked before they are served |
//! | [`opening`] | the request to open a store, and why it was refused |

pub mod begin;
pub mod end;
pub mod handed;
pub mod log;
pub mod opening;
pub mod signals;

mod flat;
mod words;

pub use begin::{Program, begin};
pub use end::End;
pub use words::{MAX_STATUS_BYTES, chain, cut};
