//! A conversation as one text. Hooks see one message before a turn, so where there are some they see all of it this way, and models see
//! what the hooks made of it. A session whose client tells what was said before begins with such a text.
//!
//! Every line of a past message has the guard's quote mark, so that none can imitate the name of who speaks next. A result of a client's
//! tool has its envelope, as where there are no hooks.

use std::sync::Arc;

use talon_agent_settings::MediaKeys;
use talon_guard::Sanitizer;
use talon_proto::agent::CompletionMessage;
use talon_sanitize::FamilyCounts;

use super::error::ConversationError;
use super::result::client_result;
use super::spoken::{MAX_MESSAGES, SpokenMessage};
use crate::fence::quoted;

/// What is asked for where the last one who spoke is not the user.
const GO_ON: &str = "Go on with it.";

/// The text of what a client tells was said before a message, and of the message.
///
/// # Errors
/// [`ConversationError::Invalid`], by the message's place.
pub(crate) fn told_conversation(
    told: Vec<CompletionMessage>,
    asked: &str,
    sanitizer: &Arc<Sanitizer>,
) -> Result<String, ConversationError> {
    if told.len() > MAX_MESSAGES {
        let why = format!("{} of them, and {MAX_MESSAGES} are the most: leave out the oldest", told.len());
        return Err(ConversationError::invalid("messages", why));
    }
    // Images come with the message, so no bounds for them are needed.
    let keys = MediaKeys::default();
    let read = |(place, message)| SpokenMessage::read(place, message, &keys, sanitizer);
    let past = told.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let asked = if asked.trim().is_empty() { GO_ON } else { asked };
    Ok(history_text(&past, asked, sanitizer))
}

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
