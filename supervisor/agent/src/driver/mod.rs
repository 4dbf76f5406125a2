//! Performs what the machine decides.
//!
//! A turn is run by one task: it hands facts to [`machine::Turn`](crate::machine::Turn), and performs the effects that come of
//! them on the [`World`]. Everything outside is behind one of the traits here, so that each has an owner of its own, and a test can
//! stand in for it.
//!
//! | trait | who is behind it |
//! |---|---|
//! | [`Host`] | the supervisor's door: plugins, guarded ([`crate::door`]) |
//! | [`OwnTools`] | what the agent answers itself: `memory.*` ([`crate::recall`]), sub-agents ([`crate::subagent`]) |
//! | [`Recall`] | what is remembered beyond a session ([`crate::recall`]) |
//! | [`Confirm`] | whether a call may be made: policy, and a person's word ([`crate::approval`]) |
//! | [`Journal`] | the session in the store ([`crate::journal`]) |
//! | [`Listener`] | who follows the turn |
//! | [`Observe`] | who counts: metrics |
//! | [`RunTurns`] | the driver itself, for those that start turns within turns |

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
