//! `orchestrator`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Instructions for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OrchestratorKeys {
    /// The operator's rules. In every session they follow the safety rules, which they cannot change.
    #[schemars(example = rule_example())]
    pub rules: Vec<String>,
}

fn rule_example() -> [&'static str; 1] {
    ["Answer in the language of the question."]
}
