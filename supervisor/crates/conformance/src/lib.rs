//! Tests a plugin from outside: whether it keeps to its protocol, check by check.
//!
//! The checks are data ([`CHECKS`]): an id, a reason, and what to do about a failure. The documentation page
//! is generated from them ([`page`]). A run starts the plugin in its jail as often as needed, performs the
//! checks, and leaves nothing behind. It knows only what a host knows about the plugin: its output, its
//! answers, and how it exits.
//!
//! | module | responsibility |
//! |---|---|
//! | [`check`], [`list`] | the definition of a check, and all checks |
//! | `harness` | the processes of the plugin, and calls to them |
//! | `checks` | the implementations of the checks, one file per group |
//! | [`report`] | the results, for programs |

pub mod check;
mod checks;
mod failed_stage;
mod harness;
pub mod list;
mod options;
pub mod page;
pub mod report;
mod run;

pub use check::{Check, Level};
pub use list::CHECKS;
pub use options::{NamedAction, Options, UnknownCheckError};
pub use report::{Outcome, Report, Verdict};
pub use run::{Progress, RunError, run};
