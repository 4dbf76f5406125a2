//! Calls that wait for a person's word: the policy that says which, and the desk where they wait.
//!
//! [`policy`] decides, purely: an action that says it only reads does not ask unless a rule names it with `always`, a rule of the operator's says `always`, `destructive` or `never`,
//! and a call whose arguments look like `rm -rf` asks unless such a rule says `never`. [`Desk`] parks what asks, durably, before
//! anybody is told of it; a restart of the agent loses none of it.
//!
//! ```text
//!            decide: yes             asked for once more, or still waited for
//! pending ─┬───────────► approved ──────────────────────────────────────────► taken: the call is made
//!          ├───────────► denied         decide: no
//!          ├───────────► expired        after `agent.confirm.expires_after`; an approval that nobody took expires, too
//!          └───────────► cancelled      its turn is over
//! ```
//!
//! What a person approves is a digest over plugin, action and arguments: another call has another one, and finds no approval. An
//! approval lets one call through, once: that it was taken is on the disk before the call is made.
//!
//! Patterns are a net for accidents and no wall: whoever wants to get around one can. The wall is the plugin's jail.

mod desk;
mod error;
mod parked;
mod parking;
mod patterns;
pub mod policy;
mod record;
mod shelf;
mod words;

pub use desk::Desk;
pub use error::{DecideError, OpenError};
pub use parking::{MAX_PENDING, MAX_PENDING_A_SENDER, MAX_PENDING_A_SESSION};
pub use policy::{Policy, Why};
pub use record::digest;

#[cfg(test)]
mod desk_tests;
#[cfg(test)]
mod policy_tests;
