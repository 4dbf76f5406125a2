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
mod calls;
mod clock;
mod drive;
mod host;
mod journal;
mod keep;
mod listener;
mod observe;
mod overheard;
mod own;
mod prepare;
mod recall;
mod spec;
mod summarize;
mod tell;

pub use allowed::Allowed;
pub use clock::{Clock, Held};
pub use drive::Driver;
pub use host::{Host, HostCall, HostError, Progress};
pub use journal::{AskedWith, Ended, Entry, Journal, JournalError};
pub use listener::{Listener, Nobody};
pub use observe::Observe;
pub use own::{OwnCall, OwnTools};
pub use recall::{Followed, Learned, Recall, Recollection};
pub use spec::{Caller, Confirm, Confirmed, RunTurns, TurnEnd, TurnSpec, World};

#[cfg(test)]
mod tests;
