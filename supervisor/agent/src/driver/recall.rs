//! Memory beyond a session, as a turn sees it.

use async_trait::async_trait;
use talon_llm::route::router::Pins;

use super::Caller;

/// Memories that match a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recollection {
    /// Facts and preferences, the most relevant first, within the section's tokens.
    pub memories: Vec<String>,
    /// Workflows that worked for a similar request, as text, the best first.
    pub hints: Vec<String>,
    /// The same workflows, for the end of the turn.
    pub followed: Vec<ShownWorkflow>,
    /// Names of the tools that they use; these are offered first.
    pub tools: Vec<String>,
    /// The embedding model that saw the request, as provider/name.
    pub model: Option<String>,
    /// Why memories were searched by words alone, although there is a model for their meaning.
    pub by_words: Option<String>,
}

/// A workflow that was suggested to a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownWorkflow {
    /// Its id in the store.
    pub id: String,
    /// Its steps: plugin and action.
    pub steps: Vec<(String, String)>,
}

/// What a finished turn leaves for memory.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedTurn {
    /// The turn.
    pub caller: Caller,
    /// The request.
    pub request: String,
    /// Calls that were made, in order: plugin, action, and whether the call succeeded.
    pub calls: Vec<(String, String, bool)>,
    /// Whether the turn ended with an answer.
    pub success: bool,
    /// The workflows that were suggested to it.
    pub followed: Vec<ShownWorkflow>,
    /// Whether it may go to no embedding model that is not on this machine.
    pub confined: bool,
}

/// Memory beyond a session. Never fails a turn: errors are logged, and the turn continues without memories.
#[async_trait]
pub trait Recall: Send + Sync {
    /// Returns what matches a request, whose pins hold for every model that sees it.
    async fn recall(&self, caller: &Caller, request: &str, pins: &Pins) -> Recollection;

    /// Stores what can be learned: the workflow of a successful turn with two or more calls; a failure mark
    /// on the workflow that a failed turn followed.
    async fn learn(&self, learned: CompletedTurn);
}
