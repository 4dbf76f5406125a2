//! A message of a session, and its size.

use talon_llm::model::{Arguments, Image, Message};

use crate::tokens::TokenCounter;

/// The tokens of a message beside its text: role and delimiters, about the same in all providers' formats.
const MESSAGE_OVERHEAD: usize = 4;

/// A message of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryMessage {
    /// The turn's number. Notes of the agent belong to the turn in which they were made.
    pub turn: u64,
    /// The message.
    pub message: Message,
}

/// Counts the tokens of messages, including the overhead of each.
#[must_use]
pub fn count_messages(messages: &[Message], counter: &dyn TokenCounter) -> usize {
    let of = |message: &Message| match message {
        Message::System { text } | Message::User { text } => counter.count(text),
        Message::Tool { content, .. } => counter.count(content),
        Message::Images { introduction, images } => {
            counter.count(introduction) + images.iter().map(Image::tokens).sum::<usize>()
        }
        Message::Assistant { text, calls, thoughts } => {
            let calls = calls.iter().map(|call| {
                let arguments = match &call.arguments {
                    Arguments::Object(arguments) => {
                        counter.count(&serde_json::to_string(arguments).unwrap_or_default())
                    }
                    Arguments::Unreadable(text) => counter.count(text),
                };
                counter.count(&call.name) + arguments + MESSAGE_OVERHEAD
            });
            let thoughts = thoughts.as_ref().map_or(0, |thoughts| counter.count(&thoughts.data.to_string()));
            counter.count(text) + thoughts + calls.sum::<usize>()
        }
    };
    messages.iter().map(|message| of(message) + MESSAGE_OVERHEAD).sum()
}
