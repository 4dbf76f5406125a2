//! `agent.subagents`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Money, TimeSpan};

/// Helpers to which the model can delegate a task, each with its own prompt, some 500 tokens of context, a
/// cheap model and a small budget. A sub-agent cannot start another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SubAgentKeys {
    /// Whether the model can use sub-agents.
    pub enabled: bool,
    /// The most questions to the model for one task.
    #[schemars(range(min = 1, max = 100))]
    pub iterations: u32,
    /// The most time from task to result.
    pub wall_time: TimeSpan,
    /// The most that one task may cost, in US dollars.
    pub cost: Option<Money>,
    /// The most tokens of the context of a task. A longer context is cut, with a notice.
    #[schemars(range(min = 50, max = 100_000))]
    pub context: u32,
    /// The model of sub-agents that name none, by provider/name or alias. A pin of a request or session is
    /// stronger than this and than theirs. Default: the cheapest suitable one.
    pub model: Option<String>,
    /// Your own sub-agents, by name. One with the name of a built-in sub-agent (`ResearchAgent`,
    /// `PlannerAgent`, `WriterAgent`, `CriticAgent`, `SummarizerAgent`) replaces it.
    pub agents: BTreeMap<String, SubAgentEntry>,
}

/// The built-in sub-agents.
pub const BUILT_IN_SUBAGENTS: [&str; 5] =
    ["ResearchAgent", "PlannerAgent", "WriterAgent", "CriticAgent", "SummarizerAgent"];

/// One sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubAgentEntry {
    /// Its purpose, in a sentence. The model chooses it by this.
    pub description: String,
    /// Its system prompt. The safety rules come before it.
    pub prompt: String,
    /// The JSON Schema of its answer, which has to be an object.
    pub schema: Value,
    /// The model, by provider/name or alias. Default: the cheapest suitable one.
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
            model: None,
            agents: BTreeMap::new(),
        }
    }
}
