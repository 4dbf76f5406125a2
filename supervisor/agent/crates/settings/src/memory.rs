//! `agent.memory`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is remembered beyond a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryKeys {
    /// Whether the model is offered `memory.save` and `memory.search`, and recalled what goes with a request.
    pub enabled: bool,
    /// Facts and preferences that are recalled into a prompt at most.
    #[schemars(range(max = 50))]
    pub recalled: u32,
    /// Whether turns that succeeded with two or more calls are recorded as workflows, and recalled for similar requests.
    pub workflows: bool,
    /// Workflows that are recalled into a prompt at most.
    #[schemars(range(max = 10))]
    pub workflows_recalled: u32,
    /// Tokens of both together in a prompt.
    #[schemars(range(max = 10_000))]
    pub tokens: u32,
}

impl Default for MemoryKeys {
    fn default() -> Self {
        Self { enabled: true, recalled: 5, workflows: true, workflows_recalled: 3, tokens: 200 }
    }
}
