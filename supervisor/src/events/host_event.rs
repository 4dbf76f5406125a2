//! Kinds, severities, and an event before it has a number.

use std::collections::BTreeMap;
use std::time::SystemTime;

use prost::Message as _;
use talon_proto::host;
use talon_sanitize::Sanitized;

use crate::to_wire::{unix_ms, wire};

/// The longest summary, in bytes and so in characters: a line that a chat message or a subject of an e-mail shows whole.
const MAX_SUMMARY_BYTES: usize = 490;
/// The longest details, in bytes.
const MAX_DETAILS_BYTES: usize = 16 << 10;
/// How many events this one stands for.
const COUNT: &str = "count";

/// What happened. The same names stand in the configuration of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum HostEventKind {
    /// A plugin's process died or did not start; or it stays down until an operator acts.
    PluginFailed,
    /// It died again within the restart window, and is started again.
    PluginRestarting,
    /// It is quarantined.
    PluginQuarantined,
    /// It takes calls again.
    PluginReady,
    /// A version of a plugin's script was refused.
    ScriptRefused,
    /// A good version runs after a refused one.
    ScriptLoaded,
    /// The state service does not serve all requests.
    StateUnavailable,
    /// It serves all requests again.
    StateAvailable,
    /// A configuration was refused.
    ConfigRefused,
    /// Events are missing.
    Gap,
}

impl HostEventKind {
    pub(super) const ALL: [Self; 10] = [
        Self::PluginFailed,
        Self::PluginRestarting,
        Self::PluginQuarantined,
        Self::PluginReady,
        Self::ScriptRefused,
        Self::ScriptLoaded,
        Self::StateUnavailable,
        Self::StateAvailable,
        Self::ConfigRefused,
        Self::Gap,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::PluginFailed => "plugin.failed",
            Self::PluginRestarting => "plugin.restarting",
            Self::PluginQuarantined => "plugin.quarantined",
            Self::PluginReady => "plugin.ready",
            Self::ScriptRefused => "script.refused",
            Self::ScriptLoaded => "script.loaded",
            Self::StateUnavailable => "state.unavailable",
            Self::StateAvailable => "state.available",
            Self::ConfigRefused => "config.refused",
            Self::Gap => "events.gap",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Severity {
    Info,
    Warning,
    Critical,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// An event before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewHostEvent {
    pub(super) kind: HostEventKind,
    /// The plugin; empty if it is about none.
    pub(super) plugin: String,
    pub(super) severity: Severity,
    pub(super) summary: Sanitized,
    pub(super) details: Sanitized,
    pub(super) at: SystemTime,
    pub(super) fields: BTreeMap<&'static str, Sanitized>,
    /// How many events this one stands for.
    pub(super) count: u64,
}

impl NewHostEvent {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut fields: BTreeMap<String, String> =
            self.fields.iter().map(|(key, value)| ((*key).to_owned(), wire(value))).collect();
        if !self.plugin.is_empty() {
            fields.insert("plugin".to_owned(), self.plugin.clone());
        }
        fields.insert(COUNT.to_owned(), self.count.to_string());
        let event = host::HostEvent {
            number: 0,
            kind: self.kind.as_str().to_owned(),
            severity: self.severity.as_str().to_owned(),
            summary: wire(self.summary.clone().cut(MAX_SUMMARY_BYTES)),
            details: wire(self.details.clone().cut(MAX_DETAILS_BYTES)),
            time_unix_ms: millis(self.at),
            fields,
        };
        event.encode_to_vec()
    }
}

/// Why events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GapCause {
    /// They were removed at the bound of the log, or damaged.
    Removed,
    /// The log was begun anew: how many there were is unknown.
    NewLog,
}

/// What a subscriber gets in place of the events of these numbers.
pub(super) fn gap(from: u64, through: u64, cause: GapCause, now: SystemTime) -> host::HostEvent {
    let (summary, dropped) = match cause {
        GapCause::Removed => {
            let count = through.saturating_sub(from).saturating_add(1);
            (format!("{count} events are gone that were not acknowledged: {from} to {through}"), Some(count))
        }
        GapCause::NewLog => (
            "the events were begun anew, as after a restored backup: earlier ones may be missing".to_owned(),
            None,
        ),
    };
    let numbers = [("from", Some(from)), ("through", Some(through)), ("dropped", dropped)];
    host::HostEvent {
        number: through,
        kind: HostEventKind::Gap.as_str().to_owned(),
        severity: Severity::Warning.as_str().to_owned(),
        summary,
        details: String::new(),
        time_unix_ms: millis(now),
        fields: numbers
            .into_iter()
            .filter_map(|(key, number)| Some((key.to_owned(), number?.to_string())))
            .collect(),
    }
}

fn millis(at: SystemTime) -> i64 {
    i64::try_from(unix_ms(at)).unwrap_or(i64::MAX)
}
