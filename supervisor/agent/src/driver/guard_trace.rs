//! What the supervisor's guard did to a call, as its answer says.

use std::collections::BTreeMap;

use talon_proto::host::{ExecuteResponse, GuardLayer};

/// What the guard did to one call; nothing of one that never came to the supervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardTrace {
    /// Why the call failed, in a word; empty if it did not.
    pub reason: String,
    /// What each layer did, from the outermost to the plugin.
    pub layers: Vec<GuardLayer>,
    /// How often control syntax of each family was neutralized.
    pub neutralized: BTreeMap<String, u32>,
}

impl GuardTrace {
    /// Takes it from an answer.
    #[must_use]
    pub fn of(response: &ExecuteResponse) -> Self {
        let report = response.report.as_ref();
        Self {
            reason: response.reason.clone(),
            layers: response.layers.clone(),
            neutralized: report.map(|report| report.neutralised.clone()).unwrap_or_default(),
        }
    }
}
