//! The readiness of the supervisor: it accepts calls, and the first start of every desired plugin has
//! succeeded or failed.
//!
//! A plugin that failed or restarts does not make the supervisor unready. The other plugins answer, and
//! taking the supervisor out of service would take them out, too.

use std::collections::BTreeMap;

use serde::Serialize;
use talon_plugin::{Desired, Snapshot, State};

use super::sources::Sources;
use crate::host::SupervisorInfo;
use crate::service::{ManagedServiceState, ManagedServiceStatus};

/// Maximum length of a plugin's reason, in bytes: a sentence or two.
const MAX_REASON_BYTES: usize = 400;
/// Maximum number of plugins in the list; the counts cover all.
const MAX_SHOWN: usize = 100;

/// The result, as it is serialized.
#[derive(Debug, Serialize)]
pub(super) struct Readiness {
    pub(super) ready: bool,
    /// Why it is not ready; empty if it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The number of plugins, and of those in each state.
    plugins: usize,
    states: BTreeMap<&'static str, usize>,
    /// The number of plugins that were found or configured, but cannot run at all.
    refused: usize,
    /// Desired plugins that do not accept calls.
    not_ready: Vec<NotReady>,
    /// The plugins' state, unless it serves or is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_service: Option<ServiceProblem>,
    /// The agent, unless it serves or is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<ServiceProblem>,
}

/// Why plugins cannot read or write all of their state, or clients not use the agent. It does not make the
/// supervisor unready: plugins that keep nothing answer as before.
#[derive(Debug, Serialize)]
struct ServiceProblem {
    state: &'static str,
    reason: String,
}

impl ServiceProblem {
    fn of(status: ManagedServiceStatus) -> Option<Self> {
        let reason = status.problem.unwrap_or_default().cut(MAX_REASON_BYTES).into_string();
        (status.state != ManagedServiceState::Serving)
            .then_some(Self { state: status.state.as_str(), reason })
    }
}

#[derive(Debug, Serialize)]
struct NotReady {
    plugin: String,
    state: &'static str,
    reason: String,
}

impl Readiness {
    pub(super) fn json(&self) -> String {
        // It consists of strings and numbers, so serialization cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        text + "\n"
    }
}

pub(super) fn readiness(sources: &Sources) -> Readiness {
    let plugins: Vec<Snapshot> = sources.registry.list().iter().map(|plugin| plugin.snapshot()).collect();
    let mut readiness =
        assess(&plugins, sources.info.reloader.refused().len(), sources.dispatcher.is_draining());
    let SupervisorInfo { state, agent, .. } = &*sources.info;
    readiness.state_service = state.as_ref().and_then(|state| ServiceProblem::of(state.status()));
    readiness.agent = agent.as_ref().and_then(|agent| ServiceProblem::of(agent.status()));
    readiness
}

fn assess(plugins: &[Snapshot], refused: usize, draining: bool) -> Readiness {
    let wanted = || plugins.iter().filter(|plugin| plugin.desired == Desired::Up);
    let begins: Vec<&str> =
        wanted().filter(|plugin| is_first_start(plugin)).map(|plugin| plugin.name.as_str()).collect();
    let reason = if draining {
        "draining: calls in flight finish, and no new ones are taken".to_owned()
    } else if let Some(first) = begins.first() {
        let others = begins.len() - 1;
        match others {
            0 => format!("{first} starts for the first time"),
            _ => format!("{first} and {others} more start for the first time"),
        }
    } else {
        String::new()
    };
    let mut states = BTreeMap::new();
    for plugin in plugins {
        *states.entry(plugin.state.as_str()).or_default() += 1;
    }
    let not_ready =
        wanted().filter(|plugin| plugin.state != State::Ready).take(MAX_SHOWN).map(|plugin| NotReady {
            plugin: plugin.name.to_string(),
            state: plugin.state.as_str(),
            // It was sanitized when it was read from the plugin.
            reason: plugin.reason.clone().unwrap_or_default().cut(MAX_REASON_BYTES).into_string(),
        });
    Readiness {
        ready: reason.is_empty(),
        reason,
        plugins: plugins.len(),
        states,
        refused,
        not_ready: not_ready.collect(),
        state_service: None,
        agent: None,
    }
}

/// Whether the plugin's first start is still running. A later start has a reason.
fn is_first_start(plugin: &Snapshot) -> bool {
    matches!(plugin.state, State::Discovered | State::Starting | State::Handshaking)
        && plugin.reason.is_none()
}
