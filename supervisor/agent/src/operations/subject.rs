//! What an operation is done to, as the audit log has it.

use talon_proto::agent::Approval;
use ulid::Ulid;

/// What is recorded instead of a text that is no id: it could be anything.
pub(crate) const NO_ID: &str = "(no id)";

/// An id that a client names, if it has the form of one: a ULID.
pub(crate) fn id(text: &str) -> &str {
    // Other forms that name the same id are none of ours.
    let is_id = Ulid::from_string(text).is_ok_and(|id| id.to_string() == text);
    if is_id { text } else { NO_ID }
}

/// The SHA-256 that a client names, if it has the form of one: 64 hexadecimal digits.
pub(crate) fn digest(text: &str) -> &str {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_digest { text } else { NO_ID }
}

/// What was decided: the call, or what else it was, and the rule that was made of it.
pub(crate) fn decided_subject(approval: &Approval) -> String {
    let call = match (approval.plan.is_some(), approval.plugin.is_empty()) {
        (true, _) => "plan".to_owned(),
        (false, true) => "question".to_owned(),
        (false, false) => format!("{}.{}", approval.plugin, approval.action),
    };
    match &*approval.rule_id {
        "" => call,
        rule => format!("{call} rule {rule}"),
    }
}
