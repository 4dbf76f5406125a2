//! Judges a plugin from outside: what it promises by its protocol, check by check.
//!
//! The checks are data ([`CHECKS`]): an id, a reason, and what to do about it, from which the page about them is made
//! ([`page`]). A run starts the plugin in its jail as often as it needs to, makes each check, and leaves nothing behind.
//! It knows of the plugin what a host knows: what it prints, what it answers, how it ends.
//!
//! | module | what it is |
//! |---|---|
//! | [`check`], [`list`] | what a check is, and all of them |
//! | `bench` | the plugin on the workbench: its processes, and calls to them |
//! | `checks` | what each check does, a file a group |
//! | [`report`] | the outcome, for programs |

mod bench;
pub mod check;
mod checks;
pub mod list;
mod options;
pub mod page;
pub mod report;
mod run;

pub use check::{Check, Level};
pub use list::CHECKS;
pub use options::{Named, Options, UnknownId};
pub use report::{Outcome, Report, Verdict};
pub use run::{Progress, RunError, run};
