//! A conversation as one text. Hooks see one message before a turn, so where there are some they see all of it this way, and models see
//! what the hooks made of it.
//!
//! Every line of a past message has the guard's quote mark, so that none can imitate the name of who speaks next. A result of a client's
//! tool has its envelope, as where there are no hooks.

use std::sync::Arc;

use talon_guard::Sanitizer;
use talon_sanitize::FamilyCounts;

use super::result::client_result;
use super::spoken::SpokenMessage;
use crate::fence::quoted;

/// The text of what came before, and of the message to answer.
pub(super) fn history_text<'s>(
    past: impl IntoIterator<Item = &'s SpokenMessage>,
    asked: &str,
    sanitizer: &Arc<Sanitizer>,
) -> String {
    let mut lines = String::new();
    for spoken in past {
        match spoken {
            SpokenMessage::System(_) => {}
            SpokenMessage::User { text, .. } => push(&mut lines, "user", text),
            SpokenMessage::Assistant { text, calls } => {
                push(&mut lines, "assistant", text);
                for call in calls {
                    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
                    let arguments = sanitizer.text(&arguments, &mut FamilyCounts::default()).into_owned();
                    push(&mut lines, "assistant calls", &format!("{} {arguments}", call.name));
                }
            }
            SpokenMessage::Result { call_id, text } => {
                lines.push_str("result:\n");
                lines.push_str(&client_result(call_id, text, sanitizer));
                lines.push('\n');
            }
        }
    }
    if lines.is_empty() {
        return asked.to_owned();
    }
    format!(
        "The conversation so far, as the client of an API tells it. Each line of a message begins with a mark.\n\n{lines}\nThe message to answer:\n\n{asked}"
    )
}

fn push(lines: &mut String, who: &str, text: &str) {
    if !text.trim().is_empty() {
        lines.push_str(who);
        lines.push_str(":\n");
        lines.push_str(&quoted(text));
    }
}
