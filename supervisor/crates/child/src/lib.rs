//! The common part of the supervisor's own child processes: `talon-state` and `talon-agent`.
//!
//! The supervisor holds the other end of such a process's standard input, which is a control socket: it sends
//! what to open and which clients to serve, and the process ends when it closes. The supervisor also reads
//! the log from the process's standard error.
//!
//! | module | contents |
//! |---|---|
//! | [`program`] | the main function |
//! | [`log`] | JSON lines on stderr |
//! | [`signals`] | signal handling |
//! | [`exit`] | the exit of the process, as the supervisor sees it |
//! | [`inherited`] | descriptors that came with a control message, checked before they are served |
//! | `shared_requests` | requests whose answer serves all who ask at the same time |
//! | `open_request` | with the feature `store`: the request to open a store, and why it was refused |
//! | `session_file`, `yaml` | with the feature `store`: a session as a file that `talon import` reads |

pub mod exit;
pub mod inherited;
pub mod log;
#[cfg(feature = "store")]
pub mod open_request;
pub mod program;
#[cfg(feature = "store")]
pub mod session_file;
pub mod signals;
#[cfg(feature = "store")]
pub mod yaml;

mod error_text;
mod json_format;
mod shared_requests;

pub use error_text::{MAX_STATUS_BYTES, truncate};
pub use exit::ExitReason;
pub use program::{Program, run_program};
pub use shared_requests::SharedRequests;
