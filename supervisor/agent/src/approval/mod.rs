//! Calls that wait for a person's approval: the policy that selects them, and the queue in which they wait.
//!
//! [`policy`] decides, without side effects. A read-only action needs no approval unless a rule that names it
//! says `always`. An operator's rule says `always`, `destructive` or `never`. A call whose arguments look
//! like `rm -rf` needs approval unless such a rule says `never`. [`ApprovalQueue`] stores such a call before
//! any client sees it, so a restart of the agent loses none.
//!
//! ```text
//!            decide: yes             requested again, or still waited for
//! pending ─┬───────────► approved ──────────────────────────────────────────► taken: the call is made
//!          ├───────────► denied         decide: no
//!          ├───────────► expired        after `agent.confirm.expires_after`; an unused approval expires, too
//!          └───────────► cancelled      its turn is over
//! ```
//!
//! A person approves a digest over plugin, action and arguments. Another call has another digest, so the
//! approval does not cover it. An approval lets one call through, once: that it was used is on disk before
//! the call is made.
//!
//! Patterns prevent accidents; they are no security boundary, and can be evaded. The boundary is the plugin's
//! jail.

mod announcement;
mod error;
mod journal;
mod messages;
mod parked_call;
mod patterns;
pub mod policy;
mod queue;
mod record;
mod registry;
pub mod rules;
mod store;

pub use error::{DecideError, OpenError};
pub use policy::{ConfirmReason, ConfirmSettings, Policy};
pub use queue::ApprovalQueue;
pub use record::digest;
pub use rules::{RuleError, RuleScope};

#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod queue_tests;
