//! What the checks report, and what they know of the rest of the configuration.

use talon_sanitize::nearest;

use crate::finding::{Finding, Severity};
use crate::{MAX_DEADLINE, MAX_NAME_CHARS, Role};

/// What the rest of the configuration knows.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'c> {
    /// The plugins' names.
    pub plugins: &'c [&'c str],
    /// Whether a plugin directory may have others.
    pub has_plugin_dir: bool,
    /// The sub-agents' names.
    pub subagents: &'c [&'c str],
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) found: Vec<Finding>,
}

impl Findings {
    /// A list has too many entries.
    pub(super) fn check_count(&mut self, role: Role, entries: usize, most: usize, help: &str) {
        if entries > most {
            self.found.push(Finding {
                severity: Severity::Problem,
                list: role.list(),
                index: None,
                key: None,
                message: format!("has {entries} entries, and {most} are the most"),
                help: help.to_owned(),
            });
        }
    }

    /// What is reported of one entry.
    pub(super) fn of(&mut self, role: Role, index: usize) -> EntryFindings<'_> {
        EntryFindings { list: role.list(), index, found: &mut self.found }
    }
}

/// What is reported of one entry.
pub(super) struct EntryFindings<'f> {
    list: &'static str,
    index: usize,
    found: &'f mut Vec<Finding>,
}

impl EntryFindings<'_> {
    pub(super) fn problem(&mut self, key: &'static str, message: impl Into<String>, help: impl Into<String>) {
        self.report(Severity::Problem, key, message.into(), help.into());
    }

    pub(super) fn warning(&mut self, key: &'static str, message: impl Into<String>, help: impl Into<String>) {
        self.report(Severity::Warning, key, message.into(), help.into());
    }

    pub(super) fn report(&mut self, severity: Severity, key: &'static str, message: String, help: String) {
        let (list, index, key) = (self.list, Some(self.index), Some(key));
        self.found.push(Finding { severity, list, index, key, message, help });
    }

    pub(super) fn check_deadline(&mut self, deadline: talon_agent_settings::TimeSpan) {
        if deadline.get() > MAX_DEADLINE {
            let message = format!("{deadline} is more than {} s", MAX_DEADLINE.as_secs());
            self.problem("deadline", message, "shorten it: everybody waits for it");
        }
    }
}

/// A text of the configuration, bounded.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}

/// "did you mean …?", or all that there are.
pub(super) fn nearest_of(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()).first() {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}
