//! Reads the messages of a request. Pure.
//!
//! ```text
//! system …          instructions
//! user, assistant … past: what came before, turn by turn
//! user              the request
//! assistant, tool … exchanges: calls that the client made since, with their results
//! ```
//!
//! No call in them is made, whoever issued it: they are what a model sees of the past.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_agent_settings::MediaKeys;
use talon_guard::Sanitizer;
use talon_llm::model::{Message, ToolCall};
use talon_proto::agent::CompletionMessage;

use super::error::ConversationError;
use super::history_text::history_text;
use super::result::client_result;
use super::spoken::{MAX_MESSAGES, SpokenMessage};
use super::turn_cache::{CachedTurn, TurnCache};
use crate::context::HistoryMessage;
use crate::driver::KEEPING;
use crate::media::ImageWithBytes;

/// The result of a call that the client left without one.
const NO_RESULT: &str = "error: the client brought no result of this call";

/// A conversation, ready for a turn.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The number of the turn that answers it.
    pub(crate) turn: u64,
    pub(crate) instructions: String,
    pub(crate) past: Vec<HistoryMessage>,
    pub(crate) request: String,
    /// The images of the request.
    pub(crate) images: Vec<ImageWithBytes>,
    pub(crate) exchanges: Vec<Message>,
    /// The images of everything, with those of the request.
    pub(crate) all_images: Vec<ImageWithBytes>,
}

/// What a conversation is read with.
pub(crate) struct ConversationReader<'r> {
    pub(crate) sender: &'r str,
    pub(crate) kept: &'r TurnCache,
    pub(crate) sanitizer: &'r Arc<Sanitizer>,
    pub(crate) media: &'r MediaKeys,
    /// Whether hooks see the request: then it tells all of the past.
    pub(crate) is_hooked: bool,
}

impl ConversationReader<'_> {
    /// Reads a conversation.
    pub(crate) fn read(&self, messages: Vec<CompletionMessage>) -> Result<Conversation, ConversationError> {
        if messages.len() > MAX_MESSAGES {
            let why =
                format!("{} of them, and {MAX_MESSAGES} are the most: leave out the oldest", messages.len());
            return Err(ConversationError::invalid("messages", why));
        }
        let mut said = Vec::with_capacity(messages.len());
        let mut instructions = Vec::new();
        for (place, message) in messages.into_iter().enumerate() {
            match SpokenMessage::read(place, message, self.media, self.sanitizer)? {
                SpokenMessage::System(text) => instructions.push(text),
                spoken => said.push((place, spoken)),
            }
        }
        if said.is_empty() {
            // Nobody else says anything, so this is what is asked.
            let asked = instructions.pop().unwrap_or_default();
            said.push((0, SpokenMessage::User { text: asked, images: Vec::new() }));
        }
        let Some(asked) = said.iter().rposition(|(_, spoken)| matches!(spoken, SpokenMessage::User { .. }))
        else {
            return Err(ConversationError::invalid("messages", "none of them is a user's"));
        };
        if matches!(said.last(), Some((_, SpokenMessage::Assistant { .. }))) {
            return Err(ConversationError::invalid("messages", "the last one is a user's or a tool's"));
        }
        let followed = said.split_off(asked + 1);
        let Some((place, SpokenMessage::User { text, images })) = said.pop() else {
            return Err(ConversationError::invalid("messages", "none of them is a user's"));
        };
        if text.trim().is_empty() {
            let field = format!("messages[{place}].content");
            return Err(ConversationError::invalid(field, "it is empty: say what is wanted"));
        }
        let mut conversation = Conversation {
            instructions: instructions.join("\n\n"),
            all_images: images.clone(),
            images,
            ..Conversation::default()
        };
        conversation.exchanges = self.exchanges(followed, true, &mut conversation.all_images)?;
        if self.is_hooked {
            let past = said.iter().map(|(_, spoken)| spoken);
            conversation.request = history_text(past, &text, self.sanitizer);
            conversation.turn = 1;
            for (_, spoken) in said {
                if let SpokenMessage::User { images, .. } = spoken {
                    conversation.images.extend(images.iter().cloned());
                    conversation.all_images.extend(images);
                }
            }
        } else {
            conversation.request = text;
            self.read_past(said, &mut conversation)?;
        }
        Ok(conversation)
    }

    fn read_past(
        &self,
        said: Vec<(usize, SpokenMessage)>,
        conversation: &mut Conversation,
    ) -> Result<(), ConversationError> {
        let mut turn = 0;
        let mut followed = Vec::new();
        for (place, spoken) in said {
            let SpokenMessage::User { text, images } = spoken else {
                followed.push((place, spoken));
                continue;
            };
            self.end_turn(turn, std::mem::take(&mut followed), conversation)?;
            turn += 1;
            conversation.past.push(HistoryMessage { turn, message: Message::User { text } });
            if !images.is_empty() {
                let shown = images.iter().map(|(image, _)| image.clone()).collect();
                let message = Message::Images { introduction: String::new(), images: shown };
                conversation.past.push(HistoryMessage { turn, message });
                conversation.all_images.extend(images);
            }
        }
        self.end_turn(turn, followed, conversation)?;
        // Something said before any user is a turn of its own.
        conversation.turn = conversation.past.last().map_or(0, |last| last.turn) + 1;
        Ok(())
    }

    fn end_turn(
        &self,
        turn: u64,
        followed: Vec<(usize, SpokenMessage)>,
        conversation: &mut Conversation,
    ) -> Result<(), ConversationError> {
        let messages = self.exchanges(followed, false, &mut conversation.all_images)?;
        let turn = turn.max(1);
        conversation.past.extend(messages.into_iter().map(|message| HistoryMessage { turn, message }));
        Ok(())
    }

    /// What followed a user's message. `is_last` says that the turn goes on with it: then every call needs its result, and what the
    /// server's own tools did has to be there.
    fn exchanges(
        &self,
        said: Vec<(usize, SpokenMessage)>,
        is_last: bool,
        images: &mut Vec<ImageWithBytes>,
    ) -> Result<Vec<Message>, ConversationError> {
        let mut messages = Vec::new();
        let mut open: Option<OpenCalls> = None;
        for (place, spoken) in said {
            match spoken {
                SpokenMessage::Assistant { text, calls } => {
                    close(open.take(), is_last, &mut messages)?;
                    if calls.is_empty() {
                        if !text.trim().is_empty() {
                            messages.push(Message::Assistant { text, calls, thoughts: None });
                        }
                        continue;
                    }
                    let kept = self.kept(&calls);
                    let is_missing = kept.is_none() && calls.iter().any(|call| call.id.starts_with(KEEPING));
                    if is_missing && is_last {
                        return Err(ConversationError::Expired);
                    }
                    images.extend(kept.iter().flat_map(|turn| turn.images.iter().cloned()));
                    open = Some(OpenCalls { place, text, calls, kept, results: BTreeMap::new() });
                }
                SpokenMessage::Result { call_id, text } => {
                    let field = || format!("messages[{place}].tool_call_id");
                    let of = open.as_mut().filter(|open| open.calls.iter().any(|call| call.id == call_id));
                    let Some(open) = of else {
                        let why = "the assistant's message before it has no such call";
                        return Err(ConversationError::invalid(field(), why));
                    };
                    let block = client_result(&call_id, &text, self.sanitizer);
                    if open.results.insert(call_id, block).is_some() {
                        return Err(ConversationError::invalid(field(), "the call has another result"));
                    }
                }
                SpokenMessage::System(_) | SpokenMessage::User { .. } => {}
            }
        }
        close(open, is_last, &mut messages)?;
        Ok(messages)
    }

    fn kept(&self, calls: &[ToolCall]) -> Option<Arc<CachedTurn>> {
        let kept = calls.iter().find_map(|call| self.kept.find(self.sender, &call.id))?;
        // All calls are of the same answer.
        let issued = kept.messages.iter().any(|message| match message {
            Message::Assistant { calls: made, .. } => {
                calls.iter().all(|call| made.iter().any(|one| one.id == call.id))
            }
            _ => false,
        });
        issued.then_some(kept)
    }
}

/// Calls of an assistant, while their results are read.
struct OpenCalls {
    place: usize,
    text: String,
    calls: Vec<ToolCall>,
    kept: Option<Arc<CachedTurn>>,
    results: BTreeMap<String, String>,
}

fn close(
    open: Option<OpenCalls>,
    is_last: bool,
    messages: &mut Vec<Message>,
) -> Result<(), ConversationError> {
    let Some(OpenCalls { place, text, calls, kept, mut results }) = open else { return Ok(()) };
    if let Some(call) = calls.iter().find(|call| is_last && !results.contains_key(&call.id)) {
        let why =
            format!("the call {} has no result: send one message with the role tool for each call", call.id);
        return Err(ConversationError::invalid(format!("messages[{place}].tool_calls"), why));
    }
    let mut result = |call_id: &str| match results.remove(call_id) {
        Some(content) => Message::Tool { call_id: call_id.to_owned(), content, is_error: false },
        None => Message::Tool { call_id: call_id.to_owned(), content: NO_RESULT.to_owned(), is_error: true },
    };
    match kept {
        Some(kept) => messages.extend(kept.messages.iter().map(|message| match message {
            Message::Tool { call_id, .. } if calls.iter().any(|call| call.id == *call_id) => result(call_id),
            message => message.clone(),
        })),
        None => {
            let made: Vec<Message> = calls.iter().map(|call| result(&call.id)).collect();
            messages.push(Message::Assistant { text, calls, thoughts: None });
            messages.extend(made);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
