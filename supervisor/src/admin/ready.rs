//! Whether the supervisor is ready: it takes calls, and of every plugin that is wanted it is known how its first start went.
//!
//! A plugin that failed, or is being restarted, does not make the supervisor unready: its neighbours answer, and whoever
//! takes a supervisor out of service for one plugin takes them all out.

use std::collections::BTreeMap;

use serde::Serialize;
use talon_plugin::{Desired, Snapshot, State};

use super::Sources;

/// The longest reason that is shown of a plugin, in bytes: a sentence or two.
const MAX_REASON_BYTES: usize = 400;
/// So many plugins are told of one by one; the counts are of all.
const MAX_SHOWN: usize = 100;

/// The judgement, as it is told.
#[derive(Debug, Serialize)]
pub(super) struct Readiness {
    pub(super) ready: bool,
    /// Why not; empty if it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// How many there are, and how many in each state.
    plugins: usize,
    states: BTreeMap<&'static str, usize>,
    /// What was found or configured and cannot run at all.
    refused: usize,
    /// Those that are wanted and do not take calls.
    not_ready: Vec<NotReady>,
}

#[derive(Debug, Serialize)]
struct NotReady {
    plugin: String,
    state: &'static str,
    reason: String,
}

impl Readiness {
    pub(super) fn json(&self) -> String {
        // Strings and numbers alone: there is nothing in it that JSON does not know.
        let text = serde_json::to_string(self).unwrap_or_default();
        text + "\n"
    }
}

pub(super) fn judge(sources: &Sources) -> Readiness {
    let plugins: Vec<Snapshot> = sources.registry.list().iter().map(|plugin| plugin.snapshot()).collect();
    judgement(&plugins, sources.about.reloader.refused().len(), sources.door.is_draining())
}

fn judgement(plugins: &[Snapshot], refused: usize, draining: bool) -> Readiness {
    let wanted = || plugins.iter().filter(|plugin| plugin.desired == Desired::Up);
    let begins: Vec<&str> =
        wanted().filter(|plugin| begins(plugin)).map(|plugin| plugin.name.as_str()).collect();
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
            // Sanitized where it was read from the plugin.
            reason: plugin.reason.clone().unwrap_or_default().cut(MAX_REASON_BYTES).into_string(),
        });
    Readiness {
        ready: reason.is_empty(),
        reason,
        plugins: plugins.len(),
        states,
        refused,
        not_ready: not_ready.collect(),
    }
}

/// Whether nothing is known yet of a plugin's first start. A later one has a reason.
fn begins(plugin: &Snapshot) -> bool {
    matches!(plugin.state, State::Discovered | State::Starting | State::Handshaking)
        && plugin.reason.is_none()
}
