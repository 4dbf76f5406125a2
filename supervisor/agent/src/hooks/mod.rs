//! Filters, request hooks and response hooks: actions of plugins that look at every message and every answer.
//!
//! ```text
//! message ─► journal (received) ─► filters ─► request hooks ─► journal (original and refined) ─► loop
//!                                     loop ─► journal (answer) ─► response hooks ─► journal (verdicts) ─► client
//! ```
//!
//! | file | content |
//! |---|---|
//! | `pipeline` | the hooks of a stage, in order |
//! | `hook` | one hook: its arguments, its call, its verdict |
//! | `role_host` | the supervisor, as hooks see it |
//! | `record` | what the journal keeps of them |
//!
//! The driver calls the pipeline in two places, for the turns of every origin. What a stage looks at is in the journal before
//! it runs, and its verdicts are written as a whole: a turn that was interrupted in a stage loses nothing and runs that stage
//! again, and none that is in the journal.

mod hook;
mod pipeline;
mod record;
mod role_host;
mod turn_host;

pub use hook::{HookAnswer, HookError, ask};
pub use pipeline::{Hooks, Stage, StageOutcome};
pub use record::{AnswerVerdicts, HookRecord, HookedAnswer, HookedRequest, RecordedVerdict, StageEnd};
pub use role_host::{AcceptedJobs, EntryState, EntryStates, NoRoleHost, RoleCall, RoleCallError, RoleHost};

#[cfg(test)]
mod tests;
