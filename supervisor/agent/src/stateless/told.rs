//! A conversation as one text. Hooks see one message before a turn, so where there are some they see all of it this way, and models see
//! what the hooks made of it.

use super::spoken::SpokenMessage;

/// The text of what came before, and of the message to answer.
pub(super) fn told<'s>(past: impl IntoIterator<Item = &'s SpokenMessage>, asked: &str) -> String {
    let mut lines = String::new();
    for spoken in past {
        match spoken {
            SpokenMessage::System(_) => {}
            SpokenMessage::User { text, .. } => push(&mut lines, "user", text),
            SpokenMessage::Assistant { text, calls } => {
                push(&mut lines, "assistant", text);
                for call in calls {
                    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
                    push(&mut lines, "assistant calls", &format!("{} {arguments}", call.name));
                }
            }
            SpokenMessage::Result { text, .. } => push(&mut lines, "result", text),
        }
    }
    if lines.is_empty() {
        return asked.to_owned();
    }
    format!(
        "The conversation so far, as the client of an API tells it:\n\n{lines}\nThe message to answer:\n\n{asked}"
    )
}

fn push(lines: &mut String, who: &str, text: &str) {
    if !text.trim().is_empty() {
        lines.push_str(who);
        lines.push_str(": ");
        lines.push_str(text);
        lines.push('\n');
    }
}
