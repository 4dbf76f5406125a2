//! How entries are encoded as messages of the store.
//!
//! | entry | role | content | metadata, as JSON |
//! |---|---|---|---|
//! | received | user | – | the message, the options for this turn alone |
//! | asked | user | the message | the options for this turn alone |
//! | answered | assistant | the answer's text, unless it is withheld | calls, thoughts, usage, cost, finish |
//! | hooked | assistant | what the person gets | the response hooks' verdicts |
//! | began | tool | – | the call's index |
//! | parked | tool | – | the call's index, the plugin's question |
//! | brought | tool | the block | the call's index, its outcome, the tool's output |
//! | executed | tool, one message a call | the block | the same |
//! | noted | system | the note | whether it is feedback |
//! | ended | system | the message to the person | how it ended, the note to the model |
//! | undone | system | a sentence for people | the first turn |
//! | a summary | system | the summary | what it replaces |
//! | a fact | system | – | what happened, for clients alone |
//!
//! The JSON is stored in the message's calls, or in its results if it has any. All messages of an entry are
//! appended at once, so that a crash leaves all of them or none. A message without such JSON, of an imported
//! session, is interpreted by its role.

use serde::{Deserialize, Serialize};
use talon_llm::model::{Answer, Finish, Thoughts, ToolCall, Usage};
use talon_store::{Message, NewMessage, Role};

use super::fact::request_key;
use super::{JournalEntry, SessionFact, TurnOptions, TurnOutcome, TurnTotals};
use crate::context::Summary;
use crate::hooks::{AnswerVerdicts, HookedAnswer};
use crate::question::Question;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};

/// The metadata of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum EntryMetadata {
    Received {
        turn: u64,
        /// Here and not as the content, where searches look.
        message: String,
        #[serde(default)]
        with: Box<TurnOptions>,
    },
    Asked {
        turn: u64,
        #[serde(default)]
        with: Box<TurnOptions>,
    },
    Answered {
        turn: u64,
        #[serde(default)]
        calls: Vec<ToolCall>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut_call: Option<String>,
        #[serde(default)]
        finish: Finish,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
        #[serde(default)]
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thoughts: Option<Thoughts>,
        #[serde(default)]
        micro_usd: u64,
        /// The text, if people may not see it; then the message has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        withheld: Option<String>,
        /// What the model thought, as far as it said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thinking: String,
    },
    Hooked {
        turn: u64,
        #[serde(flatten)]
        verdicts: Box<AnswerVerdicts>,
    },
    Began {
        turn: u64,
        place: usize,
    },
    Parked {
        turn: u64,
        place: usize,
        question: Box<Question>,
    },
    Brought {
        turn: u64,
        place: usize,
        ran: CallOutcome,
        said: String,
        #[serde(default, skip_serializing_if = "is_default")]
        provenance: Box<Provenance>,
    },
    Executed {
        turn: u64,
        place: usize,
        of: usize,
        ran: CallOutcome,
        said: String,
        #[serde(default, skip_serializing_if = "is_default")]
        provenance: Box<Provenance>,
    },
    Noted {
        turn: u64,
        feedback: bool,
    },
    Ended {
        turn: u64,
        reason: String,
        #[serde(default)]
        note: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        totals: Option<Box<TurnTotals>>,
    },
    /// `turn` is the last turn that it takes back, and `from` the first.
    Undone {
        turn: u64,
        from: u64,
    },
    /// `turn` is the last turn that it replaces.
    Summary {
        turn: u64,
        messages: u64,
        tokens: u64,
    },
    /// For clients alone.
    Happened {
        fact: SessionFact,
    },
}

impl EntryMetadata {
    /// Reads a message's metadata; `None` if the agent did not write the message.
    pub(super) fn of(message: &Message) -> Option<Self> {
        [&message.tool_results, &message.tool_calls]
            .into_iter()
            .flatten()
            .find_map(|json| Self::deserialize(json).ok())
    }
}

#[expect(clippy::borrowed_box, reason = "the form that serde asks for")]
fn is_default(provenance: &Box<Provenance>) -> bool {
    **provenance == Provenance::default()
}

/// Encodes an entry.
pub(super) fn encode(turn: u64, entry: JournalEntry) -> Vec<NewMessage> {
    let one = |role, content, beside| vec![message(role, content, &beside)];
    match entry {
        JournalEntry::Received { text, with } => {
            let (key, merged) = (request_key_of(&with), merged_messages(turn, &with));
            let beside = EntryMetadata::Received { turn, message: text, with };
            let first = NewMessage { key, ..message(Role::User, String::new(), &beside) };
            [first].into_iter().chain(merged).collect()
        }
        JournalEntry::Asked { text, with } => {
            // A message that hooks have seen has an entry of its own before this one.
            let is_first = with.hooks.is_none();
            let key = request_key_of(&with).filter(|_| is_first);
            let merged = if is_first { merged_messages(turn, &with) } else { Vec::new() };
            let first = NewMessage { key, ..message(Role::User, text, &EntryMetadata::Asked { turn, with }) };
            [first].into_iter().chain(merged).collect()
        }
        JournalEntry::Answered { answer, micro_usd, withheld } => {
            let Answer { text, calls, cut_call, finish, usage, model, thoughts, thinking } = *answer;
            let usage = usage.map(Box::new);
            let (text, withheld) = if withheld { (String::new(), Some(text)) } else { (text, None) };
            let beside = EntryMetadata::Answered {
                turn,
                calls,
                cut_call,
                finish,
                usage,
                model,
                thoughts,
                micro_usd,
                withheld,
                thinking,
            };
            one(Role::Assistant, text, beside)
        }
        JournalEntry::AnswerHooked(hooked) => {
            let HookedAnswer { text, verdicts } = *hooked;
            one(Role::Assistant, text, EntryMetadata::Hooked { turn, verdicts: Box::new(verdicts) })
        }
        JournalEntry::CallStarted { place } => {
            one(Role::Tool, String::new(), EntryMetadata::Began { turn, place })
        }
        JournalEntry::CallParked { place, question } => {
            one(Role::Tool, String::new(), EntryMetadata::Parked { turn, place, question })
        }
        JournalEntry::CallFinished { place, result } => {
            let ToolResult { outcome: ran, block, output: said, provenance } = result;
            let provenance = Box::new(provenance);
            one(Role::Tool, block, EntryMetadata::Brought { turn, place, ran, said, provenance })
        }
        JournalEntry::CallsFinished(results) => {
            let of = results.len();
            let each = results.into_iter().enumerate().map(
                |(place, ToolResult { outcome: ran, block, output: said, provenance })| {
                    let provenance = Box::new(provenance);
                    let metadata = EntryMetadata::Executed { turn, place, of, ran, said, provenance };
                    message(Role::Tool, block, &metadata)
                },
            );
            each.collect()
        }
        JournalEntry::Noted { text, feedback } => {
            one(Role::System, text, EntryMetadata::Noted { turn, feedback })
        }
        JournalEntry::Ended(TurnOutcome { reason, message, partial, note, totals }) => {
            one(Role::System, message, EntryMetadata::Ended { turn, reason, note, partial, totals })
        }
        JournalEntry::Undone { from } => {
            let text =
                format!("The person took back what was said from turn {from} on: models no longer see it.");
            one(Role::System, text, EntryMetadata::Undone { turn, from })
        }
    }
}

impl SessionFact {
    /// The message of the store that holds it.
    #[must_use]
    pub fn into_message(self) -> NewMessage {
        let key = self.key();
        let message = message(Role::System, String::new(), &EntryMetadata::Happened { fact: self });
        NewMessage { key, ..message }
    }
}

/// The turn that a person's message began.
pub(super) fn request_turn(message: &Message) -> Option<u64> {
    match EntryMetadata::of(message)? {
        EntryMetadata::Received { turn, .. }
        | EntryMetadata::Asked { turn, .. }
        | EntryMetadata::Happened { fact: SessionFact::Merged { turn, .. } } => Some(turn),
        _ => None,
    }
}

/// Other messages that became a part of one, each under its client's name.
fn merged_messages(turn: u64, with: &TurnOptions) -> Vec<NewMessage> {
    let merged =
        with.merged.iter().map(|client_id| SessionFact::Merged { turn, client_id: client_id.clone() });
    merged.map(SessionFact::into_message).collect()
}

fn request_key_of(with: &TurnOptions) -> Option<String> {
    (!with.client_id.is_empty()).then(|| request_key(&with.client_id))
}

/// Encodes a summary of everything up to a turn.
pub(super) fn summary(turn: u64, summary: &Summary) -> NewMessage {
    let Summary { text, messages, tokens } = summary;
    let beside = EntryMetadata::Summary { turn, messages: *messages, tokens: *tokens };
    message(Role::System, text.clone(), &beside)
}

pub(super) fn message(role: Role, content: String, beside: &EntryMetadata) -> NewMessage {
    // The metadata has only string keys, so serializing it cannot fail.
    let json = serde_json::to_value(beside).ok();
    let (tool_calls, tool_results) = if role == Role::Tool { (None, json) } else { (json, None) };
    NewMessage { role, content, tool_calls, tool_results, key: None }
}

/// A decoded message.
#[derive(Debug)]
pub(super) enum DecodedMessage {
    /// A whole entry.
    Entry(u64, JournalEntry),
    /// One of the results of an entry, which its last result completes.
    Result { turn: u64, place: usize, of: usize, result: ToolResult },
    /// A summary, and the last turn that it replaces.
    Summary(u64, Summary),
    /// Something that is no part of a conversation.
    Fact,
    /// A message that the agent did not write.
    Foreign,
}

pub(super) fn decode(message: &Message) -> DecodedMessage {
    let content = || message.content.clone();
    let Some(beside) = EntryMetadata::of(message) else { return DecodedMessage::Foreign };
    match beside {
        EntryMetadata::Received { turn, message, with } => {
            DecodedMessage::Entry(turn, JournalEntry::Received { text: message, with })
        }
        EntryMetadata::Asked { turn, with } => {
            DecodedMessage::Entry(turn, JournalEntry::Asked { text: content(), with })
        }
        EntryMetadata::Answered {
            turn,
            calls,
            cut_call,
            finish,
            usage,
            model,
            thoughts,
            micro_usd,
            withheld,
            thinking,
        } => {
            let usage = usage.map(|usage| *usage);
            let is_withheld = withheld.is_some();
            let text = withheld.unwrap_or_else(content);
            let answer = Box::new(Answer { text, calls, cut_call, finish, usage, model, thoughts, thinking });
            DecodedMessage::Entry(turn, JournalEntry::Answered { answer, micro_usd, withheld: is_withheld })
        }
        EntryMetadata::Hooked { turn, verdicts } => {
            let hooked = HookedAnswer { text: content(), verdicts: *verdicts };
            DecodedMessage::Entry(turn, JournalEntry::AnswerHooked(Box::new(hooked)))
        }
        EntryMetadata::Began { turn, place } => {
            DecodedMessage::Entry(turn, JournalEntry::CallStarted { place })
        }
        EntryMetadata::Parked { turn, place, question } => {
            DecodedMessage::Entry(turn, JournalEntry::CallParked { place, question })
        }
        EntryMetadata::Brought { turn, place, ran, said, provenance } => DecodedMessage::Entry(
            turn,
            JournalEntry::CallFinished {
                place,
                result: ToolResult { outcome: ran, block: content(), output: said, provenance: *provenance },
            },
        ),
        EntryMetadata::Executed { turn, place, of, ran, said, provenance } => DecodedMessage::Result {
            turn,
            place,
            of,
            result: ToolResult { outcome: ran, block: content(), output: said, provenance: *provenance },
        },
        EntryMetadata::Noted { turn, feedback } => {
            DecodedMessage::Entry(turn, JournalEntry::Noted { text: content(), feedback })
        }
        EntryMetadata::Ended { turn, reason, note, partial, totals } => {
            let ended = TurnOutcome { reason, message: content(), partial, note, totals };
            DecodedMessage::Entry(turn, JournalEntry::Ended(ended))
        }
        EntryMetadata::Undone { turn, from } => DecodedMessage::Entry(turn, JournalEntry::Undone { from }),
        EntryMetadata::Summary { turn, messages, tokens } => {
            DecodedMessage::Summary(turn, Summary { text: content(), messages, tokens })
        }
        EntryMetadata::Happened { .. } => DecodedMessage::Fact,
    }
}
