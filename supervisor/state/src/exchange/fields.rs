//! Reads the fields of records.

use talon_store::limits::MAX_NAME_BYTES;

use super::node::{Mark, Node, Problem};

/// A field's text, with its position.
pub(super) fn text(key: &str, node: Node) -> Result<(String, Mark), Problem> {
    let at = node.at;
    let text =
        node.text().map_err(|problem| Problem { reason: format!("{key} {}", problem.reason), ..problem })?;
    Ok((text, at))
}

/// A name within the store's limits.
pub(super) fn checked(key: &str, (text, at): (String, Mark)) -> Result<String, Problem> {
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        let reason = format!("{key} must have 1 to {MAX_NAME_BYTES} bytes, not {}", text.len());
        return Err(Problem { at, reason });
    }
    if text.chars().any(char::is_control) {
        return Err(Problem { at, reason: format!("{key} must not hold control characters") });
    }
    Ok(text)
}
