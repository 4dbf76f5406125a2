//! Why a decision makes no rule, as sentences for people.

use talon_store::Error;

use super::limits::{MAX_RULE_BYTES, MAX_RULES, MAX_RULES_PER_SENDER};

/// Why a rule was not made, or not revoked. Nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// An operator's rule asks always.
    #[error("the operator's rule asks about each call of {tool}, so only this one can be approved")]
    Always {
        /// The action.
        tool: String,
    },
    /// A confirm pattern found something, and the rule would have wildcards.
    #[error(
        "this call asks because of what it says ({why}), so a rule can allow exactly this call and no pattern: leave the patterns out"
    )]
    Dangerous {
        /// Why the call asks.
        why: String,
    },
    /// A pattern names an argument that the call does not have.
    #[error("the call has no argument {name:?}; `talon approval show` has those that it has")]
    NoArgument {
        /// The name.
        name: String,
    },
    /// A pattern does not fit the call that is approved.
    #[error("the pattern of {name:?} does not fit this call: {why}")]
    Pattern {
        /// The argument.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The arguments are too large for a rule.
    #[error(
        "the arguments and patterns of a rule have at most {MAX_RULE_BYTES} bytes, not {bytes}: approve this call once, or give a pattern for the long one"
    )]
    TooLarge {
        /// Their size.
        bytes: usize,
    },
    /// There are too many.
    #[error(
        "there are {MAX_RULES_PER_SENDER} rules of this user, or {MAX_RULES} in all, which is the most: revoke some with `talon approval revoke`"
    )]
    TooMany,
    /// No rule has this id.
    #[error("there is no rule {id:?}; `talon approval rules` shows those that there are")]
    Unknown {
        /// The beginning of the requested id.
        id: String,
    },
    /// It could not be made durable.
    #[error("it could not be stored: {0}")]
    Store(#[from] Error),
}
