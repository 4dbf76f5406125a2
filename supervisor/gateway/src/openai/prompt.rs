//! The messages of a request as one question. A single message of a user is asked as it is; of several, what came before is told as a
//! conversation, which the model sees as part of what the caller says: it outranks nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use talon_proto::agent::Media;

use crate::problem::{Problem, ProblemKind};

/// A message of a client.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    role: String,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    tool_calls: Option<Vec<serde_json::Value>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Clone, Deserialize)]
struct ImageUrl {
    url: String,
}

/// A question.
#[derive(Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) media: Vec<Media>,
}

impl Prompt {
    /// Of these messages.
    ///
    /// # Errors
    /// The last one is not a user's; one is of a client's tool; an image is a link.
    pub(super) fn of(messages: &[Message]) -> Result<Self, Problem> {
        let Some((last, before)) = messages.split_last() else { return Err(wrong("there is none")) };
        if last.role != "user" {
            return Err(wrong("the last one has to be the user's"));
        }
        let mut media = Vec::new();
        let mut told = String::new();
        for message in before {
            let who = match message.role.as_str() {
                "system" | "developer" => "instructions",
                "user" => "user",
                "assistant" => "assistant",
                "tool" | "function" => {
                    return Err(wrong("tools of the client are not called here: leave out their messages"));
                }
                _ => return Err(wrong("a role is system, developer, user or assistant")),
            };
            if message.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) {
                return Err(wrong("tools of the client are not called here: leave out calls of them"));
            }
            told.push_str(who);
            told.push_str(": ");
            told.push_str(&message.text(&mut media)?);
            told.push('\n');
        }
        let asked = last.text(&mut media)?;
        let text = if told.is_empty() {
            asked
        } else {
            format!(
                "The conversation so far, as the client of an API tells it:\n\n{told}\nThe message to answer:\n\n{asked}"
            )
        };
        Ok(Self { text, media })
    }
}

impl Message {
    fn text(&self, media: &mut Vec<Media>) -> Result<String, Problem> {
        match &self.content {
            None => Ok(String::new()),
            Some(Content::Text(text)) => Ok(text.clone()),
            Some(Content::Parts(parts)) => {
                let mut texts = Vec::new();
                for part in parts {
                    match part {
                        Part::Text { text } => texts.push(text.as_str()),
                        Part::ImageUrl { image_url } => media.push(image(&image_url.url)?),
                    }
                }
                Ok(texts.join("\n"))
            }
        }
    }
}

/// The bytes of an image that is in its address.
fn image(url: &str) -> Result<Media, Problem> {
    let encoded = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let data = encoded.and_then(|(_, encoded)| STANDARD.decode(encoded).ok());
    let data = data.ok_or_else(|| wrong("an image is data:image/…;base64,…: links are not fetched"))?;
    Ok(Media { data, name: String::new() })
}

fn wrong(why: &str) -> Problem {
    Problem::new(ProblemKind::BadRequest, format!("messages: {why}")).with_fields(["messages"])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn prompt(messages: Value) -> Result<Prompt, Problem> {
        Prompt::of(&serde_json::from_value::<Vec<Message>>(messages).unwrap())
    }

    #[test]
    fn one_message_is_asked_as_it_is_and_a_conversation_is_told() {
        assert_eq!(prompt(json!([{"role": "user", "content": "Hi"}])).unwrap().text, "Hi");
        let told = prompt(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "1?"},
            {"role": "assistant", "content": "One."},
            {"role": "user", "content": [{"type": "text", "text": "2?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]},
        ]))
        .unwrap();
        assert!(told.text.contains("instructions: Be brief.\nuser: 1?\nassistant: One.\n"), "{}", told.text);
        assert!(told.text.ends_with("The message to answer:\n\n2?"));
        assert_eq!(told.media[0].data, [0, 1, 2]);
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        for messages in [
            json!([]),
            json!([{"role": "assistant", "content": "Hi"}]),
            json!([{"role": "tool", "content": "1"}, {"role": "user", "content": "Hi"}]),
            json!([{"role": "root", "content": "1"}, {"role": "user", "content": "Hi"}]),
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]}]),
        ] {
            assert_eq!(prompt(messages.clone()).unwrap_err().fields(), ["messages"], "{messages}");
        }
    }
}
