//! `agent.memory`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is remembered beyond a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryKeys {
    /// Whether the model can use `memory.save` and `memory.search`, and whether memories that match a request
    /// are put into its prompt.
    pub enabled: bool,
    /// The most facts and preferences in a prompt.
    #[schemars(range(max = 50))]
    pub recalled: u32,
    /// Whether successful turns with two or more calls are recorded as workflows and suggested for similar
    /// requests.
    pub workflows: bool,
    /// The most workflows in a prompt.
    #[schemars(range(max = 10))]
    pub workflows_recalled: u32,
    /// The most tokens of both together in a prompt.
    #[schemars(range(max = 10_000))]
    pub tokens: u32,
}

impl Default for MemoryKeys {
    fn default() -> Self {
        Self { enabled: true, recalled: 5, workflows: true, workflows_recalled: 3, tokens: 200 }
    }
}
