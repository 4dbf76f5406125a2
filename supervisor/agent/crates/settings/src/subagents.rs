//! `agent.subagents`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Money, TimeSpan};

/// Helpers that the model may give a task to: each with a prompt of its own, some 500 tokens of context, a cheap model and a small
/// budget. A sub-agent starts no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SubAgentKeys {
    /// Whether there are any.
    pub enabled: bool,
    /// Questions to the model for one task.
    #[schemars(range(min = 1, max = 100))]
    pub iterations: u32,
    /// From task to result.
    pub wall_time: TimeSpan,
    /// What one task may cost, in US dollars.
    pub cost: Option<Money>,
    /// Tokens of the context that comes with a task; more is cut, with a notice.
    #[schemars(range(min = 50, max = 100_000))]
    pub context: u32,
    /// Your own, by name. One that is called as a built-in one (`ResearchAgent`, `PlannerAgent`, `WriterAgent`, `CriticAgent`,
    /// `SummarizerAgent`) takes its place.
    pub agents: BTreeMap<String, SubAgentEntry>,
}

/// Those that are always there.
pub const BUILT_IN_SUBAGENTS: [&str; 5] =
    ["ResearchAgent", "PlannerAgent", "WriterAgent", "CriticAgent", "SummarizerAgent"];

/// One sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubAgentEntry {
    /// What it is for, in a sentence: by this the model chooses it.
    pub description: String,
    /// What it is told. The safety rules come before it.
    pub prompt: String,
    /// JSON Schema of what it answers: an object.
    pub schema: Value,
    /// A model by provider/name or alias. Without it, the cheapest that can do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it may call tools.
    #[serde(default)]
    pub tools: bool,
}

impl Default for SubAgentKeys {
    fn default() -> Self {
        Self {
            enabled: true,
            iterations: 4,
            wall_time: TimeSpan::from_secs(120),
            cost: "0.10".parse().ok(),
            context: 500,
            agents: BTreeMap::new(),
        }
    }
}
