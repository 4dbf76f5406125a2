//! `agent.context`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of a session a model gets to see, in tokens by section. The safety rules belong to none, and are never cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextKeys {
    /// The operator's rules, the workspace's files, memories and hints.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub system: u32,
    /// The running summary of what is no longer shown.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub summary: u32,
    /// Turns that are shown as they were, with the one that is going on.
    #[schemars(range(min = 200, max = 1_000_000))]
    pub recent: u32,
    /// The latest results of tools.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub tool_results: u32,
    /// What the tools are and how to call them.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub tools: u32,
}

impl Default for ContextKeys {
    fn default() -> Self {
        Self { system: 500, summary: 800, recent: 2_000, tool_results: 500, tools: 1_500 }
    }
}
