//! The limits of rules. None is configurable: a rule is made by hand.

/// The most rules. 2,000: with 4 KiB of arguments each they fit into 8 MiB; each is looked at when a call
/// asks. One more is refused.
pub const MAX_RULES: usize = 2000;
/// The most rules of one sender: more than a person keeps in mind, and ten such senders fit. One more is
/// refused.
pub const MAX_RULES_PER_SENDER: usize = 200;
/// The most bytes of a rule's arguments and patterns. 4 KiB: a command; whole files are approved one by one.
pub(super) const MAX_RULE_BYTES: usize = 4 << 10;
