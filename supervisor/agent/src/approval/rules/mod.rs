//! Rules by which people allow calls beyond the one that they are shown: for a session, or always.
//!
//! A rule belongs to the sender whose call was approved. It names one action and each of its arguments, with
//! the approved value or a pattern. It never covers what an operator's rule wants to be asked about always, and
//! one with patterns never what a confirm pattern finds: a rule for `rm *` does not allow `rm -rf /`.

mod argument_pattern;
mod error;
mod limits;
mod registry;
mod rule;

pub use error::RuleError;
pub use limits::{MAX_RULES, MAX_RULES_PER_SENDER};
pub use rule::RuleScope;

pub(super) use registry::RuleRegistry;

#[cfg(test)]
mod tests;
