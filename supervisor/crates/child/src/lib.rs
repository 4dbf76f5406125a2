//! What every child of the supervisor that is ours does alike: `talon-state` and `talon-agent`.
//!
//! Whoever starts one holds the other end of its standard input, which is its lifeline, tells it over there what to open and
//! whom to serve, and reads its log from its standard error.
//!
//! | module | what it is |
//! |---|---|
//! | [`begin()`] | from the command line to the control socket |
//! | [`log`] | JSON lines on stderr |
//! | [`signals`] | which of them mean something |
//! | [`end`] | how the process ends, as its starter sees it |
//! | [`handed`] | descriptors that came with a control message, looked at before they are served |
//! | [`opening`] | from the starter's words to what is to be opened, and why it was not |

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
