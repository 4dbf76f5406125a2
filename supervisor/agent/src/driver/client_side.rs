//! What a client brings to a turn, and what it gets of it to go on with.

use talon_llm::model::{Message, ToolCall, ToolChoice, ToolSpec};

use crate::context::HistoryMessage;

/// What the ids of calls begin with that are issued to clients.
pub const ISSUED: &str = "call_t";
/// What they begin with if the client does not know all that the turn did before them.
pub const KEEPING: &str = "call_tk";

/// What a client brings to a turn.
#[derive(Debug, Clone, Default)]
pub struct ClientSide {
    /// Its tools, each with whether calls of it have to fit its schema.
    pub tools: Vec<(ToolSpec, bool)>,
    /// Which tools the first question leaves the model.
    pub choice: ToolChoice,
    /// Whether it makes one call at a time.
    pub one_call: bool,
    /// The conversation before the request.
    pub past: Vec<HistoryMessage>,
    /// What followed the request already: calls and their results.
    pub exchanges: Vec<Message>,
    /// Whether no session keeps the conversation, so that nothing is learned of the turn.
    pub is_stateless: bool,
    /// Whether an answer that reaches the most tokens that the client set ends there.
    pub ends_at_limit: bool,
    /// Texts before which an answer ends.
    pub stop: Vec<String>,
    /// For answers that can be had again, of providers that have a word for it.
    pub seed: Option<i64>,
}

/// The calls with which a turn ended, for its client to make.
#[derive(Debug, Clone, PartialEq)]
pub struct HandedOverCalls {
    /// The calls, under the ids that were issued.
    pub calls: Vec<ToolCall>,
    /// What the turn added to the conversation, up to these calls: questions and answers of the server's own tools, too.
    pub messages: Vec<Message>,
}
