//! What the model receives when a call is not approved.

use std::time::Duration;

use talon_proto::agent::Notice;
use talon_store::Error;

use crate::driver::Confirmation;

/// The denial in the model's words, for reasons other than the user's decision.
pub(super) fn denied(why: &str) -> Confirmation {
    Confirmation::No(format!("denied: {why}"))
}

pub(super) fn too_large() -> Confirmation {
    denied(&too_large_text())
}

pub(super) fn too_large_text() -> String {
    format!(
        "this call needs the user's approval, and its arguments are too large to be shown (at most {} KiB); pass less at once",
        super::record::MAX_SHOWN_BYTES / 1024
    )
}

pub(super) fn not_stored(error: &Error) -> Confirmation {
    denied(&not_stored_text(error))
}

pub(super) fn not_stored_text(error: &Error) -> String {
    tracing::warn!(target: "agent", %error, "a parked call cannot be stored");
    "this needs the user's word, and that could not be stored; nothing was run".to_owned()
}

/// The notice to people of a call that a rule lets through.
pub(super) fn allowed_by_rule(plugin: &str, action: &str, rule: &str) -> Notice {
    let text = format!(
        "{plugin}.{action} runs without asking: rule {rule} allows it. `talon approval rules` shows it, `talon approval revoke {rule}` ends it."
    );
    Notice { level: "info".to_owned(), text, discard_text: false }
}

/// Formats a duration as `24h` or `1m 30s`; in milliseconds only below a second.
pub(super) fn format_span(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{} ms", time.as_millis()),
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m {s}s"),
        (h, 0, _) => format!("{h}h"),
        (h, m, _) => format!("{h}h {m}m"),
    }
}
