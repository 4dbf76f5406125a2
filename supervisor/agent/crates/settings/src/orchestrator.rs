//! `orchestrator`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the model is told beforehand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OrchestratorKeys {
    /// Rules of the operator. They come after the safety rules, in every session, and cannot change or precede them.
    #[schemars(example = rule_example())]
    pub rules: Vec<String>,
}

fn rule_example() -> [&'static str; 1] {
    ["Answer in the language of the question."]
}
