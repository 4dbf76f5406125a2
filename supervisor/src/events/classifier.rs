//! Which of the supervisor's events are for an operator. Pure.

use std::collections::{BTreeMap, BTreeSet};

use talon_plugin::{Event, EventKind};
use talon_proto::host;
use talon_sanitize::{Sanitized, sanitized};

use super::host_event::{HostEventKind, NewHostEvent, Severity};
use crate::service::STATE_SERVICE;

/// The fields of an event that stay with it, beside those that [`new`] adds. With these an event has what
/// [`talon_extensions::EventKind::fields`] promises of its kind.
const KEPT: [&str; 9] =
    ["instance", "service", "state", "deaths", "replacement", "neutralised", "problems", SCRIPT, "sha256"];
/// How much of a reason is a field, in bytes: notifications keep 512 of one. The details have the whole.
const MAX_REASON_BYTES: usize = 490;
/// The field with the name of a script.
pub(super) const SCRIPT: &str = "script";

/// The most scripts that are remembered as refused: those of sixteen plugins. That a further one runs again is not told.
const MAX_REFUSED_SCRIPTS: usize = 4096;

/// Remembers what is in trouble, since only the end of a trouble is worth an event.
#[derive(Debug, Default)]
pub(super) struct Classifier {
    /// Instances of plugins that failed and are not ready again. As many as there are plugins.
    failed: BTreeSet<(String, u32)>,
    /// Scripts of which the newest version does not run, by plugin. At most [`MAX_REFUSED_SCRIPTS`].
    refused_scripts: BTreeSet<(String, String)>,
    /// The state service does not serve.
    state_is_away: bool,
}

impl Classifier {
    /// Takes up what an earlier supervisor recorded, so that a recovery after a restart is told as well.
    pub(super) fn resume(&mut self, event: &host::HostEvent) {
        let plugin = event.fields.get("plugin").cloned().unwrap_or_default();
        let instance = event.fields.get("instance").and_then(|text| text.parse().ok()).unwrap_or_default();
        match HostEventKind::from_name(&event.kind) {
            Some(HostEventKind::PluginFailed | HostEventKind::PluginRestarting) => {
                self.failed.insert((plugin, instance));
            }
            Some(HostEventKind::PluginReady) => drop(self.failed.remove(&(plugin, instance))),
            Some(kind @ (HostEventKind::ScriptRefused | HostEventKind::ScriptLoaded)) => {
                let script = event.fields.get(SCRIPT).cloned().unwrap_or_default();
                match kind {
                    HostEventKind::ScriptRefused => self.remember_refused((plugin, script)),
                    _ => drop(self.refused_scripts.remove(&(plugin, script))),
                }
            }
            Some(HostEventKind::StateUnavailable) => self.state_is_away = true,
            Some(HostEventKind::StateAvailable) => self.state_is_away = false,
            _ => {}
        }
    }

    /// The event for an operator, if it is one.
    pub(super) fn classify(&mut self, event: &Event) -> Option<NewHostEvent> {
        match event.kind {
            EventKind::StateChanged => self.plugin(event),
            EventKind::Quarantined => {
                let plugin = event.plugin.as_ref()?;
                let summary = sanitized!("plugin {} is {}", plugin, event.message);
                Some(new(event, HostEventKind::PluginQuarantined, Severity::Critical, summary))
            }
            EventKind::ConfigRefused => {
                let summary = sanitized!("a configuration was {}", event.message);
                Some(new(event, HostEventKind::ConfigRefused, Severity::Warning, summary))
            }
            EventKind::ScriptLoaded | EventKind::ScriptRefused | EventKind::ScriptRemoved => {
                self.script(event)
            }
            EventKind::Supervisor if field(event, "service") == Some(STATE_SERVICE) => self.state(event),
            _ => None,
        }
    }

    /// The change of an instance's state. A process that was started to replace one is not told of: what it replaces serves on if
    /// it fails.
    fn plugin(&mut self, event: &Event) -> Option<NewHostEvent> {
        let plugin = event.plugin.as_ref()?;
        if field(event, "replacement").is_some() {
            return None;
        }
        let key = (plugin.to_string(), event.instance.unwrap_or_default());
        let reason = event.fields.get("reason").cloned().unwrap_or_default();
        let (kind, severity, summary) = match field(event, "to")? {
            "failed" | "refused" => (
                HostEventKind::PluginFailed,
                Severity::Critical,
                sanitized!("plugin {} failed and stays down: {}", plugin, reason),
            ),
            "backoff" => {
                let deaths: u32 = field(event, "deaths").and_then(|text| text.parse().ok()).unwrap_or(1);
                let summary = sanitized!("plugin {} failed: {}", plugin, reason);
                match deaths {
                    0 | 1 => (HostEventKind::PluginFailed, Severity::Warning, summary),
                    _ => (HostEventKind::PluginRestarting, Severity::Warning, summary),
                }
            }
            "ready" if self.failed.remove(&key) => {
                let summary = sanitized!("plugin {} takes calls again", plugin);
                return Some(new(event, HostEventKind::PluginReady, Severity::Info, summary));
            }
            "stopped" => {
                // An operator has ended it: its next start is no recovery.
                self.failed.remove(&key);
                return None;
            }
            _ => return None,
        };
        self.failed.insert(key);
        Some(new(event, kind, severity, summary))
    }

    /// A script: the first good version after a refused one is told of, and others are not.
    fn script(&mut self, event: &Event) -> Option<NewHostEvent> {
        let plugin = event.plugin.as_ref()?;
        let name = event.fields.get(SCRIPT)?;
        let key = (plugin.to_string(), name.to_string());
        match event.kind {
            EventKind::ScriptRefused => {
                self.remember_refused(key);
                let summary = sanitized!("plugin {}: {}", plugin, event.message);
                Some(new(event, HostEventKind::ScriptRefused, Severity::Warning, summary))
            }
            EventKind::ScriptLoaded if self.refused_scripts.remove(&key) => {
                let summary = sanitized!("plugin {}: its script {} runs as its file is", plugin, name);
                Some(new(event, HostEventKind::ScriptLoaded, Severity::Info, summary))
            }
            _ => {
                self.refused_scripts.remove(&key);
                None
            }
        }
    }

    fn remember_refused(&mut self, script: (String, String)) {
        if self.refused_scripts.len() < MAX_REFUSED_SCRIPTS {
            self.refused_scripts.insert(script);
        }
    }

    fn state(&mut self, event: &Event) -> Option<NewHostEvent> {
        // The supervisor ends it itself, as at its own end.
        if field(event, "planned") == Some("true") {
            return None;
        }
        let problem = event.fields.get("problem").cloned().unwrap_or_default();
        match field(event, "state")? {
            "serving" if std::mem::take(&mut self.state_is_away) => {
                let summary = "the state service serves all requests again".into();
                Some(new(event, HostEventKind::StateAvailable, Severity::Info, summary))
            }
            state @ ("full" | "unavailable" | "unresponsive" | "backoff" | "failed") => {
                self.state_is_away = true;
                let summary = match state {
                    "full" => sanitized!("the state service refuses writes: {}", problem),
                    _ => sanitized!("the state service does not serve: {}", problem),
                };
                Some(new(event, HostEventKind::StateUnavailable, Severity::Critical, summary))
            }
            _ => None,
        }
    }
}

fn field<'e>(event: &'e Event, key: &str) -> Option<&'e str> {
    event.fields.get(key).map(Sanitized::as_str)
}

/// Whether it has a reason.
fn is_trouble(kind: HostEventKind) -> bool {
    match kind {
        HostEventKind::PluginFailed
        | HostEventKind::PluginRestarting
        | HostEventKind::PluginQuarantined
        | HostEventKind::ScriptRefused
        | HostEventKind::StateUnavailable
        | HostEventKind::ConfigRefused => true,
        HostEventKind::PluginReady
        | HostEventKind::ScriptLoaded
        | HostEventKind::StateAvailable
        | HostEventKind::Gap => false,
    }
}

fn new(event: &Event, kind: HostEventKind, severity: Severity, summary: Sanitized) -> NewHostEvent {
    let mut fields: BTreeMap<&'static str, Sanitized> = KEPT
        .into_iter()
        .filter_map(|key| Some((key, event.fields.get(key)?.clone())))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if let Some(state) = event.fields.get("to") {
        fields.insert("state", state.clone());
    }
    if let Some(instance) = event.instance {
        fields.insert("instance", sanitized!("{}", instance));
    }
    // The summary is cut; the whole text stays here if it does not fit.
    let reason = event.fields.get("reason").or_else(|| event.fields.get("problem"));
    let details = reason.filter(|text| !text.is_empty()).unwrap_or(&event.message).clone();
    if is_trouble(kind) {
        fields.insert("reason", details.clone().cut(MAX_REASON_BYTES));
    }
    if kind == HostEventKind::PluginRestarting
        && let Some(deaths) = fields.remove("deaths")
    {
        fields.insert("restarts", deaths);
    }
    NewHostEvent {
        kind,
        plugin: event.plugin.as_ref().map(ToString::to_string).unwrap_or_default(),
        severity,
        summary,
        details,
        at: event.at,
        fields,
        count: 1,
    }
}

#[cfg(test)]
#[path = "classifier_tests.rs"]
mod tests;
