//! Everything that the agent is told.

use serde::{Deserialize, Serialize};

use crate::{AgentKeys, ModelKeys, OrchestratorKeys};

/// All sections that concern the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How it works.
    pub agent: AgentKeys,
    /// Whom it asks.
    pub models: ModelKeys,
    /// What it is told beforehand.
    pub orchestrator: OrchestratorKeys,
}
