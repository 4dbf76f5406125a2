//! The messages of a chat, as the agent reads conversations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use talon_proto::agent::{ClientCall, CompletionMessage, Media};
use utoipa::ToSchema;

use super::fields::wrong;
use crate::problem::Problem;

/// A message of a client. A name, a refusal and the like beside the text are for the client's own books.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(super) struct ChatMessage {
    /// system, developer (the same), user, assistant or tool
    role: String,
    #[serde(default)]
    content: Option<ChatContent>,
    /// Of an assistant's message: the calls that it made.
    #[serde(default)]
    tool_calls: Option<Vec<ChatCall>>,
    /// Of a tool's message: the call whose result it is.
    #[serde(default)]
    tool_call_id: Option<String>,
}

/// A text, or parts.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "a content is a text, or a list of parts: text, refusal and image_url")]
enum ChatContent {
    Text(String),
    Parts(Vec<ChatPart>),
}

/// A part of a message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPart {
    Text { text: String },
    Refusal { refusal: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
struct ImageUrl {
    /// data:image/…;base64,…: links are not fetched.
    url: String,
}

/// A call of a function of the client's.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(super) struct ChatCall {
    id: String,
    #[serde(rename = "type", default)]
    kind: CallKind,
    function: CalledFunction,
}

/// What is called.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CallKind {
    #[default]
    Function,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct CalledFunction {
    name: String,
    /// JSON.
    arguments: String,
}

impl From<&ClientCall> for ChatCall {
    fn from(call: &ClientCall) -> Self {
        let ClientCall { id, name, arguments } = call.clone();
        Self { id, kind: CallKind::Function, function: CalledFunction { name, arguments } }
    }
}

impl ChatMessage {
    /// The message at this place.
    ///
    /// # Errors
    /// It is of a role that there is not, or its image is a link.
    pub(super) fn read(self, place: usize) -> Result<CompletionMessage, Problem> {
        let Self { role, content, tool_calls, tool_call_id } = self;
        let role = match role.as_str() {
            "developer" => "system".to_owned(),
            "function" => return Err(wrong("messages", "the role function is of the past: it is tool")),
            _ => role,
        };
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        match content {
            None => {}
            Some(ChatContent::Text(text)) => texts.push(text),
            Some(ChatContent::Parts(parts)) => {
                for part in parts {
                    match part {
                        ChatPart::Text { text } | ChatPart::Refusal { refusal: text } => texts.push(text),
                        ChatPart::ImageUrl { image_url } => {
                            media.push(image(&image_url.url, &format!("messages[{place}].content"))?);
                        }
                    }
                }
            }
        }
        let calls = tool_calls.unwrap_or_default().into_iter().map(|call| {
            let ChatCall { id, function: CalledFunction { name, arguments }, .. } = call;
            ClientCall { id, name, arguments }
        });
        Ok(CompletionMessage {
            role,
            text: texts.join("\n"),
            media,
            calls: calls.collect(),
            call_id: tool_call_id.unwrap_or_default(),
        })
    }
}

/// The bytes of an image that is in its address.
pub(super) fn image(url: &str, field: &str) -> Result<Media, Problem> {
    let encoded = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let data = encoded.and_then(|(_, encoded)| STANDARD.decode(encoded).ok());
    let data =
        data.ok_or_else(|| wrong(field, "an image is data:image/…;base64,…: links are not fetched"))?;
    Ok(Media { data, name: String::new() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(message: Value) -> Result<CompletionMessage, Problem> {
        serde_json::from_value::<ChatMessage>(message).unwrap().read(0)
    }

    // Promises: GW-166
    #[test]
    fn messages_keep_their_roles_texts_images_and_calls() {
        let said = read(json!({"role": "user", "name": "ada", "content": [{"type": "text", "text": "2?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC", "detail": "auto"}}]}));
        let said = said.unwrap();
        assert_eq!((said.text.as_str(), &said.media[0].data[..]), ("2?", &[0, 1, 2][..]));
        let called = read(json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}}]}));
        assert_eq!(called.unwrap().calls[0].arguments, "{\"a\":1}");
        let result = read(json!({"role": "tool", "tool_call_id": "c1", "content": "x"})).unwrap();
        assert_eq!((result.role.as_str(), result.call_id.as_str()), ("tool", "c1"));
        assert_eq!(read(json!({"role": "developer", "content": "x"})).unwrap().role, "system");
    }

    // Promises: GW-166
    #[test]
    fn a_link_is_not_fetched() {
        let link = json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]});
        assert_eq!(read(link).unwrap_err().fields(), ["messages[0].content"]);
        assert_eq!(read(json!({"role": "function", "content": "x"})).unwrap_err().fields(), ["messages"]);
    }
}
