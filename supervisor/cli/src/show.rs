//! Tables of plugins, shared by several verbs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anstyle::{AnsiColor, Style};
use talon_proto::host::{Extension, Instance, Plugin};
use talon_sanitize::{Sanitized, sanitized};

use crate::line::sanitized_line;
use crate::output::Output;
use crate::table::{Cell, Table};

/// The table of `plugin list` and `status`, followed by the reasons for the plugins' states.
pub(crate) fn plugins(plugins: &[Plugin], out: &mut Output) {
    if plugins.is_empty() {
        out.line("no plugins: put an executable into the plugin directory, or name one under plugins.tools.plugins");
        return;
    }
    let now = SystemTime::now();
    let mut table = Table::new(&[
        "PLUGIN",
        "STATE",
        "READY",
        "ACTIONS",
        "CALLS",
        "ERRORS",
        "IN FLIGHT",
        "DEATHS",
        "UP FOR",
    ]);
    for plugin in plugins {
        let counters = plugin.counters.clone().unwrap_or_default();
        let ready = plugin.instances.iter().filter(|instance| instance.state == "ready").count();
        let mut in_flight = plugin.calls_in_flight.to_string();
        if plugin.calls_waiting > 0 {
            in_flight.push_str(&format!(" (+{} waiting)", plugin.calls_waiting));
        }
        table.row(vec![
            plugin.name.as_str().into(),
            state(&plugin.state, &plugin.desired),
            format!("{ready}/{}", plugin.instances.len()).into(),
            plugin.actions.into(),
            counters.calls.into(),
            (counters.tool_errors + counters.refusals + counters.faults).into(),
            in_flight.into(),
            plugin.deaths.into(),
            plugin
                .instances
                .iter()
                .filter_map(|one| up_for(one, now))
                .max()
                .map(short)
                .unwrap_or_default()
                .into(),
        ]);
    }
    out.table(&table);
    let notes = notes(plugins);
    if !notes.is_empty() {
        out.line("");
        out.table(&notes);
    }
}

/// The entries of `extensions`, for `extension list` and `plugin show`.
pub(crate) fn extensions(extensions: &[Extension]) -> Table {
    let mut table = Table::new(&["ROLE", "NAME", "ACTION", "STATE", "ROLE DECLARED", "WHY"]);
    for extension in extensions {
        table.row(vec![
            extension.role.as_str().into(),
            extension.name.as_str().into(),
            extension.action.as_str().into(),
            state(&extension.state, ""),
            if extension.declared { "yes".into() } else { "".into() },
            extension.reason.as_str().into(),
        ]);
    }
    table
}

/// What is to know about the states of the plugins.
fn notes(plugins: &[Plugin]) -> Table {
    let mut notes = Table::new(&[]);
    for plugin in plugins {
        if !plugin.reason.is_empty() {
            notes.row(vec![format!("{}:", plugin.name).into(), plugin.reason.as_str().into()]);
        }
        if !plugin.replacement_problem.is_empty() {
            let text = format!("what runs is older than it should be: {}", plugin.replacement_problem);
            notes.row(vec![format!("{}:", plugin.name).into(), text.into()]);
        }
        if let Some(text) = changed(plugin) {
            notes.row(vec![format!("{}:", plugin.name).into(), text.into()]);
        }
        if let Some(text) = events(plugin) {
            notes.row(vec![format!("{}:", plugin.name).into(), text.into()]);
        }
        if plugin.quarantined {
            let text = format!(
                "in quarantine, because its answers held too much control syntax: calls are refused until `talon plugin \
                 start {}`",
                plugin.name
            );
            notes.row(vec![format!("{}:", plugin.name).into(), text.into()]);
        }
        if !plugin.breaker.is_empty() && plugin.breaker != "closed" {
            let text = format!(
                "its circuit breaker is {}: calls are refused until it has recovered",
                plugin.breaker
            );
            notes.row(vec![format!("{}:", plugin.name).into(), text.into()]);
        }
    }
    notes
}

/// A note if events that it tells wait, or cannot be read.
pub(crate) fn events(plugin: &Plugin) -> Option<String> {
    let events = plugin.events.as_ref().filter(|events| events.granted)?;
    let name = &plugin.name;
    if !events.problem.is_empty() {
        return Some(format!("its events are not read: {}; see `talon plugin logs {name}`", events.problem));
    }
    events.waiting.then(|| {
        "it tells more events than it may, or the disk refuses them, and they wait in it: see `talon event list --source \
             plugins`, and raise `per_minute` of its grant `events` if it should"
            .to_owned()
    })
}

/// How many changed actions are listed; the others are counted.
const MAX_NAMED: usize = 8;

/// A note if actions differ from what was approved.
pub(crate) fn changed(plugin: &Plugin) -> Option<String> {
    let changed = &plugin.changed_actions;
    if changed.is_empty() && !plugin.changed_texts {
        return None;
    }
    let own = plugin.changed_texts.then_some("its own texts");
    let named = own
        .into_iter()
        .chain(changed.iter().take(MAX_NAMED).map(String::as_str))
        .collect::<Vec<_>>()
        .join(", ");
    let more = match changed.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let name = &plugin.name;
    Some(format!(
        "{named}{more}: not what was approved; look with `talon plugin show {name}`, approve with `talon plugin approve \
         {name}`"
    ))
}

/// The observed state, and the desired one if it differs.
pub(crate) fn state(state: &str, desired: &str) -> Cell {
    let text = match (state, desired) {
        ("stopped", "up") => "stopped (wanted up)".to_owned(),
        ("ready", "down") => "ready (wanted down)".to_owned(),
        _ => state.to_owned(),
    };
    match state_style(state) {
        Some(style) => Cell::styled(text, style),
        None => text.into(),
    }
}

/// The colour of a state.
pub(crate) fn state_style(state: &str) -> Option<Style> {
    match state {
        "ready" | "serving" | "loaded" => Some(AnsiColor::Green.on_default()),
        "failed" | "failing" | "outdated" | "refused" | "unhealthy" | "full" | "unresponsive" => {
            Some(AnsiColor::Red.on_default())
        }
        "backoff" | "waiting" | "starting" | "handshaking" | "draining" | "unavailable" => {
            Some(AnsiColor::Yellow.on_default())
        }
        _ => None,
    }
}

/// How long a ready instance has been ready.
pub(crate) fn up_for(instance: &Instance, now: SystemTime) -> Option<Duration> {
    if instance.ready_since_unix_ms == 0 {
        return None;
    }
    now.duration_since(system_time(instance.ready_since_unix_ms)).ok()
}

/// Converts a timestamp of the host API.
pub(crate) fn system_time(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms)).unwrap_or(UNIX_EPOCH)
}

/// A timestamp as text, in UTC; one beyond the year 9999 is shown as a number.
pub(crate) fn timestamp(unix_ms: u64) -> Sanitized {
    /// 9999-12-31T23:59:59Z, the last second the formatter can write.
    const LAST_UNIX_MS: u64 = 253_402_300_799_000;
    if unix_ms > LAST_UNIX_MS {
        return sanitized!("{}", unix_ms);
    }
    sanitized_line(humantime::format_rfc3339_millis(system_time(unix_ms)))
}

/// A duration in its largest two units: `3d 4h`, `1m 5s`, `40s`.
pub(crate) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// An amount of memory: `412 KiB`, `41.0 MiB`, `1.2 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let tenths = |unit: u32| format!("{}.{}", bytes >> unit, ((bytes % (1 << unit)) * 10) >> unit);
    match bytes {
        0..=0x000f_ffff => format!("{} KiB", bytes >> 10),
        0x0010_0000..=0x3fff_ffff => format!("{} MiB", tenths(20)),
        _ => format!("{} GiB", tenths(30)),
    }
}

/// A count with its noun, in the plural form if needed.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_two_units() {
        let shown: Vec<String> =
            [5, 65, 3700, 200_000].into_iter().map(|seconds| short(Duration::from_secs(seconds))).collect();
        assert_eq!(shown, ["5s", "1m 5s", "1h 1m", "2d 7h"]);
    }

    #[test]
    fn amounts_of_memory_have_a_unit() {
        assert_eq!([4096, 43_200_000, 5 << 28].map(bytes), ["4 KiB", "41.1 MiB", "1.2 GiB"]);
        assert!(bytes(u64::MAX).ends_with(" GiB"));
    }

    #[test]
    fn stamps_of_any_clock_can_be_shown() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn one_is_one_and_others_are_many() {
        let counts: Vec<String> = [0, 1, 2].into_iter().map(|count| counted(count, "key")).collect();
        assert_eq!(counts, ["0 keys", "1 key", "2 keys"]);
    }
}
