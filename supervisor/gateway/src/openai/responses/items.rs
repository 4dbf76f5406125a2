//! The items of a request's input.

use serde::Deserialize;
use serde_json::Value;
use talon_proto::agent::{ClientCall, CompletionMessage, Media};
use utoipa::ToSchema;

use super::super::fields::wrong;
use super::super::message::image;
use super::ids::StoredId;
use crate::events::client_message::shown;
use crate::problem::Problem;

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// What somebody says. The id is one of a stored response, if it is ours.
    Message { role: String, text: String, media: Vec<Media>, of: Option<StoredId> },
    /// A call of a function of the client's.
    Call { call: ClientCall, of: Option<StoredId> },
    /// Its result.
    Output { call_id: String, text: String },
    /// Something that is stored.
    Reference(Option<StoredId>),
    /// Thoughts of a model: nothing is read of them.
    Reasoning,
}

/// What is said: a user's text, or items.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(super) enum ResponseInput {
    Text(String),
    Items(Vec<InputItem>),
}

/// An item of the input. An item without a type is a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem {
    Message(InputMessage),
    FunctionCall(InputCall),
    FunctionCallOutput(InputOutput),
    ItemReference(InputReference),
    /// Thoughts of a model: nothing is read of them.
    Reasoning,
}

/// What somebody says.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct InputMessage {
    /// system, developer (the same), user or assistant
    role: String,
    content: InputContent,
    /// Of a message that is part of a stored response.
    #[serde(default)]
    id: Option<String>,
}

/// A text, or parts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "a content is a text, or a list of parts: input_text, output_text, refusal and input_image"
)]
enum InputContent {
    Text(String),
    Parts(Vec<InputPart>),
}

/// A part of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputPart {
    InputText {
        text: String,
    },
    OutputText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    InputImage {
        /// data:image/…;base64,…: links are not fetched.
        image_url: String,
    },
}

/// A call of a function of the client's.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct InputCall {
    call_id: String,
    name: String,
    /// JSON.
    arguments: String,
    #[serde(default)]
    id: Option<String>,
}

/// The result of a call.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct InputOutput {
    call_id: String,
    output: InputContent,
}

/// A part of a stored response.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct InputReference {
    id: String,
}

/// Reads the input.
pub(super) fn read(input: Value) -> Result<Vec<Item>, Problem> {
    let input = match input {
        Value::String(text) => ResponseInput::Text(text),
        Value::Array(items) => {
            let items =
                items.into_iter().enumerate().map(|(place, item)| InputItem::read(&field(place), item));
            ResponseInput::Items(items.collect::<Result<_, Problem>>()?)
        }
        _ => return Err(wrong("input", "it is a text, or a list of items")),
    };
    match input {
        ResponseInput::Text(text) => {
            Ok(vec![Item::Message { role: "user".to_owned(), text, media: Vec::new(), of: None }])
        }
        ResponseInput::Items(items) => {
            items.into_iter().enumerate().map(|(place, item)| item.item(&field(place))).collect()
        }
    }
}

/// The name of an item.
fn field(place: usize) -> String {
    format!("input[{place}]")
}

impl InputItem {
    fn read(field: &str, mut item: Value) -> Result<Self, Problem> {
        if let Some(item) = item.as_object_mut() {
            let kind = item.entry("type").or_insert(Value::Null);
            if kind.is_null() {
                *kind = "message".into();
            }
        }
        serde_json::from_value(item).map_err(|error| wrong(field, &shown(&error)))
    }

    fn item(self, field: &str) -> Result<Item, Problem> {
        Ok(match self {
            Self::Message(InputMessage { role, content, id }) => {
                let (text, media) = content.read(field)?;
                let role = if role == "developer" { "system".to_owned() } else { role };
                let of = id.and_then(|id| StoredId::read("msg", &id)).filter(|_| role == "assistant");
                Item::Message { role, text, media, of }
            }
            Self::FunctionCall(InputCall { call_id, name, arguments, id }) => {
                let of = id.and_then(|id| StoredId::read("fc", &id));
                Item::Call { call: ClientCall { id: call_id, name, arguments }, of }
            }
            Self::FunctionCallOutput(InputOutput { call_id, output }) => {
                Item::Output { call_id, text: output.read(field)?.0 }
            }
            Self::ItemReference(InputReference { id }) => {
                Item::Reference(StoredId::read("msg", &id).or_else(|| StoredId::read("fc", &id)))
            }
            Self::Reasoning => Item::Reasoning,
        })
    }
}

impl InputContent {
    fn read(self, field: &str) -> Result<(String, Vec<Media>), Problem> {
        let parts = match self {
            Self::Text(text) => return Ok((text, Vec::new())),
            Self::Parts(parts) => parts,
        };
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                InputPart::InputText { text }
                | InputPart::OutputText { text }
                | InputPart::Refusal { refusal: text } => texts.push(text),
                InputPart::InputImage { image_url } => media.push(image(&image_url, field)?),
            }
        }
        Ok((texts.join("\n"), media))
    }
}

impl Item {
    /// The stored turn that the item is a part of.
    pub(super) fn of(&self) -> Option<&StoredId> {
        match self {
            Self::Message { of, .. } | Self::Call { of, .. } | Self::Reference(of) => of.as_ref(),
            Self::Output { .. } | Self::Reasoning => None,
        }
    }
}

/// The items as a conversation. Calls are those of the assistant's message before them.
pub(super) fn conversation(items: Vec<Item>) -> Result<Vec<CompletionMessage>, Problem> {
    let mut messages: Vec<CompletionMessage> = Vec::new();
    for item in items {
        match item {
            Item::Message { role, text, media, .. } => {
                messages.push(CompletionMessage { role, text, media, ..CompletionMessage::default() });
            }
            Item::Call { call, .. } => match messages.last_mut().filter(|last| last.role == "assistant") {
                Some(last) => last.calls.push(call),
                None => messages.push(CompletionMessage {
                    role: "assistant".to_owned(),
                    calls: vec![call],
                    ..CompletionMessage::default()
                }),
            },
            Item::Output { call_id, text } => messages.push(CompletionMessage {
                role: "tool".to_owned(),
                text,
                call_id,
                ..CompletionMessage::default()
            }),
            Item::Reference(_) => {
                return Err(wrong(
                    "input",
                    "an item_reference is to a part of the stored response before: send the item itself",
                ));
            }
            Item::Reasoning => {}
        }
    }
    Ok(messages)
}

/// Instructions as a message.
pub(super) fn system(text: String) -> CompletionMessage {
    CompletionMessage { role: "system".to_owned(), text, ..CompletionMessage::default() }
}

/// What a session is asked: what was said before the message, the message, which is a user's or empty, and the media of all.
pub(super) fn asked(mut messages: Vec<CompletionMessage>) -> (Vec<CompletionMessage>, String, Vec<Media>) {
    let media = messages.iter_mut().flat_map(|message| std::mem::take(&mut message.media)).collect();
    let text = messages.pop_if(|last| last.role == "user").map(|last| last.text);
    (messages, text.unwrap_or_default(), media)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Promises: GW-173
    #[test]
    fn items_are_read_by_their_types_and_ours_are_known() {
        let ours = StoredId::new("01ARZ3NDEKTSV4RRFFQ69G5FAV", 2);
        let items = read(json!([
            {"role": "developer", "content": "Be brief."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAEC", "detail": "auto"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "id": ours.message(), "status": "completed",
                "content": [{"type": "output_text", "text": "Hello", "annotations": []}]},
            {"type": "function_call", "id": ours.call(0), "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
            {"type": "item_reference", "id": ours.message()},
        ]))
        .unwrap();
        assert_eq!(items.iter().filter(|item| item.of() == Some(&ours)).count(), 3);
        assert!(matches!(&items[1], Item::Message { media, .. } if media.len() == 1));
        let messages = conversation(items[..6].to_vec()).unwrap();
        assert_eq!(
            messages.iter().map(|message| message.role.as_str()).collect::<Vec<_>>(),
            ["system", "user", "assistant", "tool"]
        );
        assert_eq!((messages[2].text.as_str(), messages[2].calls.len()), ("Hello", 1));
        let (told, text, media) = asked(messages[..2].to_vec());
        assert_eq!(
            (told.len(), text.as_str(), media.len()),
            (1, "Hi", 1),
            "a user's message is what is asked"
        );
        let (told, text, _) = asked(messages);
        assert_eq!((told.len(), text.as_str()), (4, ""), "nobody asks after a result");
        assert_eq!(conversation(items).unwrap_err().fields(), ["input"]);
    }

    // Promises: GW-173
    #[test]
    fn what_is_no_item_is_refused_by_its_place() {
        for (input, field) in [
            (json!(7), "input"),
            (json!([{"type": "web_search_call"}]), "input[0]"),
            (json!([{"role": "user", "content": "a"}, {"type": "function_call_output"}]), "input[1]"),
            (json!([{"role": "user", "content": [{"type": "input_file"}]}]), "input[0]"),
        ] {
            assert_eq!(read(input.clone()).unwrap_err().fields(), [field], "{input}");
        }
    }
}
