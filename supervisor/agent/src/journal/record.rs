//! How entries are encoded as messages of the store.
//!
//! | entry | role | content | metadata, as JSON |
//! |---|---|---|---|
//! | asked | user | the message | the options for this turn alone |
//! | answered | assistant | the answer's text | calls, thoughts, usage, cost, finish |
//! | began | tool | – | the call's index |
//! | brought | tool | the block | the call's index, its outcome, the tool's output |
//! | executed | tool, one message a call | the block | the same |
//! | noted | system | the note | whether it is feedback |
//! | ended | system | the message to the person | how it ended, the note to the model |
//! | a summary | system | the summary | what it replaces |
//!
//! The JSON is stored in the message's calls, or in its results if it has any. All messages of an entry are appended at
//! once, so that a crash leaves all of them or none. A message without such JSON, of an imported session, is
//! interpreted by its role.

use serde::{Deserialize, Serialize};
use talon_llm::model::{Answer, Finish, Thoughts, ToolCall, Usage};
use talon_store::{Message, NewMessage, Role};

use crate::context::Summary;
use crate::driver::{AskedWith, Ended, Entry};
use crate::loop_context::{Ran, ToolResult};

/// The metadata of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Beside {
    Asked {
        turn: u64,
        #[serde(default)]
        with: Box<AskedWith>,
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
        usage: Option<Usage>,
        #[serde(default)]
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thoughts: Option<Thoughts>,
        #[serde(default)]
        micro_usd: u64,
    },
    Began {
        turn: u64,
        place: usize,
    },
    Brought {
        turn: u64,
        place: usize,
        ran: Ran,
        said: String,
    },
    Executed {
        turn: u64,
        place: usize,
        of: usize,
        ran: Ran,
        said: String,
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
    },
    /// `turn` is the last turn that it replaces.
    Summary {
        turn: u64,
        messages: u64,
        tokens: u64,
    },
}

impl Beside {
    /// Reads a message's metadata; `None` if the agent did not write the message.
    pub(super) fn of(message: &Message) -> Option<Self> {
        [&message.tool_results, &message.tool_calls]
            .into_iter()
            .flatten()
            .find_map(|json| Self::deserialize(json).ok())
    }
}

/// Encodes an entry.
pub(super) fn encoded(turn: u64, entry: Entry) -> Vec<NewMessage> {
    let one = |role, content, beside| vec![message(role, content, &beside)];
    match entry {
        Entry::Asked { text, with } => one(Role::User, text, Beside::Asked { turn, with }),
        Entry::Answered { answer, micro_usd } => {
            let Answer { text, calls, cut_call, finish, usage, model, thoughts } = *answer;
            let beside =
                Beside::Answered { turn, calls, cut_call, finish, usage, model, thoughts, micro_usd };
            one(Role::Assistant, text, beside)
        }
        Entry::Began { place } => one(Role::Tool, String::new(), Beside::Began { turn, place }),
        Entry::Brought { place, result: ToolResult { ran, block, said } } => {
            one(Role::Tool, block, Beside::Brought { turn, place, ran, said })
        }
        Entry::Executed(results) => {
            let of = results.len();
            let each = results.into_iter().enumerate().map(|(place, ToolResult { ran, block, said })| {
                message(Role::Tool, block, &Beside::Executed { turn, place, of, ran, said })
            });
            each.collect()
        }
        Entry::Noted { text, feedback } => one(Role::System, text, Beside::Noted { turn, feedback }),
        Entry::Ended(Ended { reason, message, note }) => {
            one(Role::System, message, Beside::Ended { turn, reason, note })
        }
    }
}

/// Encodes a summary of everything up to a turn.
pub(super) fn summary(turn: u64, summary: &Summary) -> NewMessage {
    let Summary { text, messages, tokens } = summary;
    let beside = Beside::Summary { turn, messages: *messages, tokens: *tokens };
    message(Role::System, text.clone(), &beside)
}

fn message(role: Role, content: String, beside: &Beside) -> NewMessage {
    // The metadata has only string keys, so serializing it cannot fail.
    let json = serde_json::to_value(beside).ok();
    let (tool_calls, tool_results) = if role == Role::Tool { (None, json) } else { (json, None) };
    NewMessage { role, content, tool_calls, tool_results }
}

/// A decoded message.
#[derive(Debug)]
pub(super) enum Read {
    /// A whole entry.
    Entry(u64, Entry),
    /// One of the results of an entry, which its last result completes.
    Result { turn: u64, place: usize, of: usize, result: ToolResult },
    /// A summary, and the last turn that it replaces.
    Summary(u64, Summary),
    /// A message that the agent did not write.
    Foreign,
}

pub(super) fn decoded(message: &Message) -> Read {
    let content = || message.content.clone();
    let Some(beside) = Beside::of(message) else { return Read::Foreign };
    match beside {
        Beside::Asked { turn, with } => Read::Entry(turn, Entry::Asked { text: content(), with }),
        Beside::Answered { turn, calls, cut_call, finish, usage, model, thoughts, micro_usd } => {
            let answer = Answer { text: content(), calls, cut_call, finish, usage, model, thoughts };
            Read::Entry(turn, Entry::Answered { answer: Box::new(answer), micro_usd })
        }
        Beside::Began { turn, place } => Read::Entry(turn, Entry::Began { place }),
        Beside::Brought { turn, place, ran, said } => {
            Read::Entry(turn, Entry::Brought { place, result: ToolResult { ran, block: content(), said } })
        }
        Beside::Executed { turn, place, of, ran, said } => {
            Read::Result { turn, place, of, result: ToolResult { ran, block: content(), said } }
        }
        Beside::Noted { turn, feedback } => Read::Entry(turn, Entry::Noted { text: content(), feedback }),
        Beside::Ended { turn, reason, note } => {
            Read::Entry(turn, Entry::Ended(Ended { reason, message: content(), note }))
        }
        Beside::Summary { turn, messages, tokens } => {
            Read::Summary(turn, Summary { text: content(), messages, tokens })
        }
    }
}
