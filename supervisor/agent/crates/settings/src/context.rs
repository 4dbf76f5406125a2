//! `agent.context`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a session a model sees, in tokens by section. The safety rules belong to no section and are
/// never cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextKeys {
    /// The operator's rules, the workspace's files, memories and hints.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub system: u32,
    /// The running summary of what is no longer shown.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub summary: u32,
    /// Turns that are shown verbatim, including the current one.
    #[schemars(range(min = 200, max = 1_000_000))]
    pub recent: u32,
    /// The latest results of tools.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub tool_results: u32,
    /// The declarations of the tools.
    #[schemars(range(min = 50, max = 1_000_000))]
    pub tools: u32,
}

impl Default for ContextKeys {
    fn default() -> Self {
        Self { system: 500, summary: 800, recent: 2_000, tool_results: 500, tools: 1_500 }
    }
}
