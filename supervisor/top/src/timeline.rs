//! Events and log lines of plugins, sanitized for display.

use std::collections::VecDeque;

use talon_proto::host::{Event, LogLine};
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::reading::neutralized;

/// The most events to store, for all plugins together: some screens of history before the event of interest.
/// The oldest is dropped.
pub(crate) const MAX_EVENTS: usize = 1000;
/// The most log lines to store of the selected plugin. The oldest is dropped; `talon plugin logs` has more.
pub(crate) const MAX_LINES: usize = 500;
/// The most bytes to store of one text: some lines of a wide screen.
const MAX_TEXT_BYTES: usize = 1024;

/// How severe an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Plain,
    Warning,
    Bad,
}

/// An event or a log line.
#[derive(Debug, Clone)]
pub(crate) struct TimelineEntry {
    pub(crate) unix_ms: u64,
    pub(crate) plugin: Sanitized,
    /// The event's kind, or the stream of a log line.
    pub(crate) kind: Sanitized,
    pub(crate) text: Sanitized,
    pub(crate) severity: Severity,
}

impl TimelineEntry {
    /// Converts an event. `None` for routine events of each call: the counters include these, and they would
    /// displace all others.
    pub(crate) fn from_event(event: &Event) -> Option<Self> {
        let outcome = event.fields.get("outcome").map(String::as_str);
        let tone = match (event.kind.as_str(), outcome) {
            ("call_progress", _) | ("call_finished", Some("ok" | "tool_error")) => return None,
            ("plugin_exited" | "health_failed" | "refused" | "quarantined", _)
            | ("call_finished", Some("host_fault")) => Severity::Bad,
            ("log_lines_dropped" | "tools_changed" | "call_finished", _) => Severity::Warning,
            _ => Severity::Plain,
        };
        let text = Raw::from(&event.message).line_within(MAX_TEXT_BYTES);
        Some(Self {
            unix_ms: event.unix_ms,
            plugin: neutralized(&event.plugin),
            kind: neutralized(&event.kind),
            text: if event.instance == 0 { text } else { sanitized!("/{} {}", event.instance, text) },
            severity: tone,
        })
    }

    pub(crate) fn from_log_line(line: &LogLine) -> Self {
        Self {
            unix_ms: line.unix_ms,
            plugin: neutralized(&line.plugin),
            kind: neutralized(&line.stream),
            text: Raw::from(&line.text).line_within(MAX_TEXT_BYTES),
            severity: match line.level.as_str() {
                "error" => Severity::Bad,
                "warn" => Severity::Warning,
                _ => Severity::Plain,
            },
        }
    }
}

/// The latest entries, up to a capacity.
#[derive(Debug)]
pub(crate) struct Timeline {
    entries: VecDeque<TimelineEntry>,
    capacity: usize,
}

impl Timeline {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::new(), capacity }
    }

    pub(crate) fn push(&mut self, happened: TimelineEntry) {
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back(happened);
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TimelineEntry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_every_call_is_left_to_the_numbers() {
        let finished = |outcome: &str| Event {
            kind: "call_finished".to_owned(),
            fields: [("outcome".to_owned(), outcome.to_owned())].into(),
            ..Event::default()
        };
        assert!(TimelineEntry::from_event(&finished("ok")).is_none());
        assert_eq!(TimelineEntry::from_event(&finished("host_fault")).unwrap().severity, Severity::Bad);
        assert_eq!(TimelineEntry::from_event(&finished("refused")).unwrap().severity, Severity::Warning);
    }

    #[test]
    fn texts_are_inert_and_bounded_and_the_oldest_is_forgotten() {
        let line = LogLine { text: format!("\u{1b}[2J{}", "x".repeat(9999)), ..LogLine::default() };
        let kept = TimelineEntry::from_log_line(&line);
        assert!(kept.text.starts_with("␛[2J") && kept.text.len() < 2 * MAX_TEXT_BYTES);
        let mut latest = Timeline::new(2);
        for unix_ms in 1..=3 {
            latest.push(TimelineEntry { unix_ms, ..kept.clone() });
        }
        assert_eq!(latest.iter().map(|one| one.unix_ms).collect::<Vec<_>>(), [2, 3]);
    }
}
