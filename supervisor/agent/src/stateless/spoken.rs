//! One message of a client.

use talon_agent_settings::MediaKeys;
use talon_guard::Sanitizer;
use talon_llm::model::{Arguments, ToolCall};
use talon_proto::agent::{ClientCall, CompletionMessage};
use talon_sanitize::{FamilyCounts, prefix};

use super::client_tools::is_name;
use super::error::ConversationError;
use crate::media::{AcceptedMedia, ImageWithBytes, accept};

/// The most messages of a conversation. 2,048: more than a window holds. Not configurable.
pub(super) const MAX_MESSAGES: usize = 2048;
/// The longest id of a call; providers' have some 30 bytes.
const MAX_ID_BYTES: usize = 256;
/// How much of a text that does not fit is shown.
const MAX_SHOWN_BYTES: usize = 64;

/// What somebody says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SpokenMessage {
    System(String),
    User { text: String, images: Vec<ImageWithBytes> },
    Assistant { text: String, calls: Vec<ToolCall> },
    Result { call_id: String, text: String },
}

impl SpokenMessage {
    /// Reads the message at this place. What an assistant said comes from a model, or from whoever the client had it from, so control
    /// syntax in it is neutralized.
    pub(super) fn read(
        place: usize,
        message: CompletionMessage,
        media_keys: &MediaKeys,
        sanitizer: &Sanitizer,
    ) -> Result<Self, ConversationError> {
        let field = |name: &str| format!("messages[{place}].{name}");
        let CompletionMessage { role, text, media, calls, call_id } = message;
        if !media.is_empty() && role != "user" {
            return Err(ConversationError::invalid(field("content"), "only a user's message has images"));
        }
        if !calls.is_empty() && role != "assistant" {
            return Err(ConversationError::invalid(
                field("tool_calls"),
                "only an assistant's message has calls",
            ));
        }
        match role.as_str() {
            "system" => Ok(Self::System(text)),
            "user" => {
                let AcceptedMedia { images, files } = accept(media, media_keys)
                    .map_err(|error| ConversationError::invalid(field("content"), error.to_string()))?;
                if !files.is_empty() {
                    return Err(ConversationError::invalid(
                        field("content"),
                        "files other than images are not taken",
                    ));
                }
                Ok(Self::User { text, images })
            }
            "assistant" => {
                let calls = calls.into_iter().enumerate();
                let calls = calls
                    .map(|(number, made)| call(&format!("messages[{place}].tool_calls[{number}]"), made));
                let text = sanitizer.text(&text, &mut FamilyCounts::default()).into_owned();
                Ok(Self::Assistant { text, calls: calls.collect::<Result<_, _>>()? })
            }
            "tool" => Ok(Self::Result { call_id: known_id(&field("tool_call_id"), call_id)?, text }),
            other => {
                let why = format!(
                    "{:?} is none; it is system, developer, user, assistant or tool",
                    prefix(other, MAX_SHOWN_BYTES)
                );
                Err(ConversationError::invalid(field("role"), why))
            }
        }
    }
}

fn call(field: &str, made: ClientCall) -> Result<ToolCall, ConversationError> {
    let ClientCall { id, name, arguments } = made;
    if !is_name(&name) {
        let why = "a name is 1 to 64 letters, digits, '_' and '-'";
        return Err(ConversationError::invalid(format!("{field}.function.name"), why));
    }
    let arguments = match serde_json::from_str(&arguments) {
        Ok(object) => Arguments::Object(object),
        Err(_) => Arguments::Unreadable(arguments),
    };
    Ok(ToolCall { id: known_id(&format!("{field}.id"), id)?, name, arguments })
}

fn known_id(field: &str, id: String) -> Result<String, ConversationError> {
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        let why = format!("an id has 1 to {MAX_ID_BYTES} bytes without control characters");
        return Err(ConversationError::invalid(field, why));
    }
    Ok(id)
}
