//! Performs what the machine decides.
//!
//! One task runs a turn: it passes facts to [`machine::Turn`](crate::machine::Turn), and performs the
//! resulting effects in the [`TurnEnvironment`]. Everything outside is behind one of these traits, which
//! tests replace.
//!
//! | trait | implemented by |
//! |---|---|
//! | [`Host`] | the supervisor's host service: plugins, guarded ([`crate::host_client`]) |
//! | [`BuiltinTools`] | the built-in tools: `memory.*` ([`crate::recall`]), sub-agents ([`crate::subagent`]) |
//! | [`Recall`] | memory beyond a session ([`crate::recall`]) |
//! | [`CallApprover`] | approval of calls: policy, and a person's decision ([`crate::approval`]) |
//! | [`Journal`](crate::journal::Journal) | the session in the store ([`crate::journal`]) |
//! | [`Listener`] | the clients that follow the turn |
//! | [`TurnObserver`] | metrics |
//! | [`TurnRunner`] | the driver itself, for tools that start turns within turns |

mod allowed;
mod ask;
mod begin;
mod builtin_tools;
mod caller;
mod calls;
mod clock;
mod cost_tracking_listener;
mod drive;
mod host;
mod listener;
mod notify;
mod observe;
mod persistence;
mod prepare;
mod read_more;
mod recall;
mod search;
mod spec;
mod summarize;

pub use allowed::AllowedTools;
pub use builtin_tools::{BuiltinCall, BuiltinTools};
pub use caller::Caller;
pub use clock::{Clock, ClockHold};
pub use drive::Driver;
pub use host::{Host, HostCall, HostError, Progress};
pub use listener::{Listener, NoListener};
pub use observe::TurnObserver;
pub use recall::{CompletedTurn, Recall, Recollection, ShownWorkflow};
pub use spec::{CallApprover, Confirmation, TurnEnd, TurnEnvironment, TurnRunner, TurnSpec};

#[cfg(test)]
mod tests;
