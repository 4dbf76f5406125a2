//! What is remembered beyond a session, as a turn sees it.

use async_trait::async_trait;

use super::Caller;

/// What goes with a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recollection {
    /// Facts and preferences, the most relevant first, within the section's tokens.
    pub memories: Vec<String>,
    /// Workflows that worked for something like it, in words, the best first.
    pub hints: Vec<String>,
    /// The same workflows, for the end of the turn.
    pub followed: Vec<Followed>,
    /// Names of tools that they use, which are offered first.
    pub tools: Vec<String>,
}

/// A workflow that a turn was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// Its id in the store.
    pub id: String,
    /// Its steps: plugin and action.
    pub steps: Vec<(String, String)>,
}

/// What there is to learn of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Whose turn.
    pub caller: Caller,
    /// What was asked for.
    pub request: String,
    /// Calls that were made, plugin and action, in their order, each with whether it succeeded.
    pub calls: Vec<(String, String, bool)>,
    /// Whether the turn ended with an answer.
    pub success: bool,
    /// What it had been shown.
    pub followed: Vec<Followed>,
}

/// Remembers. Never fails a turn: what goes wrong is logged, and the turn goes on without.
#[async_trait]
pub trait Recall: Send + Sync {
    /// What goes with a request.
    async fn recall(&self, caller: &Caller, request: &str) -> Recollection;

    /// Keeps what can be learned: a workflow of a turn that succeeded with two or more calls; a mark on the workflow that one that
    /// failed had followed.
    async fn learn(&self, learned: Learned);
}
