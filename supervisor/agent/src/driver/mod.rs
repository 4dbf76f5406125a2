//! Performs what the machine decides.
//!
//! One task runs a turn: it passes facts to [`machine::Turn`](crate::machine::Turn), and performs the resulting effects
//! in the [`World`]. Everything outside is behind one of these traits, which tests replace.
//!
//! | trait | implemented by |
//! |---|---|
//! | [`Host`] | the supervisor's host service: plugins, guarded ([`crate::door`]) |
//! | [`OwnTools`] | the built-in tools: `memory.*` ([`crate::recall`]), sub-agents ([`crate::subagent`]) |
//! | [`Recall`] | memory beyond a session ([`crate::recall`]) |
//! | [`Confirm`] | approval of calls: policy, and a person's decision ([`crate::approval`]) |
//! | [`Journal`] | the session in the store ([`crate::journal`]) |
//! | [`Listener`] | the clients that follow the turn |
//! | [`Observe`] | metrics |
//! | [`RunTurns`] | the driver itself, for tools that start turns within turns |

mod allowed;
mod ask;
mod begin;
mod builtin_tools;
mod calls;
mod clock;
mod cost_tracking_listener;
mod drive;
mod host;
mod journal;
mod listener;
mod notify;
mod observe;
mod persistence;
mod prepare;
mod recall;
mod spec;
mod summarize;

pub use allowed::AllowedTools;
pub use builtin_tools::{BuiltinCall, BuiltinTools};
pub use clock::{Clock, ClockHold};
pub use drive::Driver;
pub use host::{Host, HostCall, HostError, Progress};
pub use journal::{Journal, JournalEntry, JournalError, TurnOptions, TurnOutcome};
pub use listener::{Listener, NoListener};
pub use observe::TurnObserver;
pub use recall::{CompletedTurn, Recall, Recollection, ShownWorkflow};
pub use spec::{CallApprover, Caller, Confirmation, TurnEnd, TurnEnvironment, TurnRunner, TurnSpec};

#[cfg(test)]
mod tests;
