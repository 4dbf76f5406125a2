//! All settings of the agent.

use serde::{Deserialize, Serialize};

use crate::{AgentKeys, ModelKeys, OrchestratorKeys, ShadowKeys};

/// All sections that concern the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The agent.
    pub agent: AgentKeys,
    /// The models.
    pub models: ModelKeys,
    /// Instructions for the model.
    pub orchestrator: OrchestratorKeys,
    /// The shadow loop.
    pub shadow: ShadowKeys,
}
