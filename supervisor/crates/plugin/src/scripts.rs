//! The scripts that a plugin says it runs: what of each is kept, and what a new status changes. Pure.

use std::collections::BTreeMap;

use talon_proto::notices::ScriptStatus;
use talon_sanitize::{Raw, Sanitized};

/// The most scripts of one process, as `talon.plugin.v1` has it.
pub(crate) const MAX_SCRIPTS: usize = 256;
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// The most functions of a script, and how much of each name is kept, in bytes.
const MAX_FUNCTIONS: usize = 16;
const MAX_FUNCTION_BYTES: usize = 32;
/// How much of a problem is kept, in bytes: a traceback.
const MAX_PROBLEM_BYTES: usize = 4 << 10;
/// The characters of a digest.
const DIGEST_CHARS: usize = 64;

/// One script, as its plugin says. Text that the plugin wrote is sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// The functions that are called.
    pub functions: Vec<Sanitized>,
    /// SHA-256 of the source that runs, in lower-case hex; `None` while none runs.
    pub sha256: Option<String>,
    /// How many versions were loaded since the process started.
    pub loads: u64,
    /// Why the newest version does not run.
    pub problem: Option<Sanitized>,
    /// Calls that were ended at their time limit by an interrupt.
    pub ended_by_interrupt: u64,
    /// Calls that were ended at their time limit with the process that ran them.
    pub ended_with_process: u64,
}

impl Script {
    /// `loaded`, `outdated` (a newer version was refused, and the last good one runs) or `failed` (none runs).
    #[must_use]
    pub fn state(&self) -> &'static str {
        match (&self.sha256, &self.problem) {
            (Some(_), None) => "loaded",
            (Some(_), Some(_)) => "outdated",
            (None, _) => "failed",
        }
    }

    /// What a status says, within its bounds.
    fn of(status: &ScriptStatus) -> Self {
        let is_digest = status.sha256.len() == DIGEST_CHARS
            && status.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let problem = bounded(&status.problem, MAX_PROBLEM_BYTES);
        Self {
            name: status.name.clone(),
            functions: status
                .functions
                .iter()
                .take(MAX_FUNCTIONS)
                .map(|name| Raw::from(name).line_within(MAX_FUNCTION_BYTES))
                .collect(),
            sha256: is_digest.then(|| status.sha256.clone()),
            loads: status.loads,
            problem: (!problem.is_empty()).then(|| Raw::from(problem).text().cut(MAX_PROBLEM_BYTES)),
            ended_by_interrupt: status.ended_by_interrupt,
            ended_with_process: status.ended_with_process,
        }
    }
}

/// Whether a status has a name that a script can have.
pub(crate) fn has_valid_name(status: &ScriptStatus) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=MAX_NAME_BYTES).contains(&status.name.len()) && status.name.bytes().all(plain)
}

/// The beginning of a text, of at most so many bytes.
fn bounded(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// What a status changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScriptChange {
    /// Another version runs.
    Loaded,
    /// A version was refused.
    Refused,
    /// It is gone.
    Removed,
}

/// The scripts of one process.
#[derive(Debug, Default)]
pub(crate) struct ScriptTable(BTreeMap<String, Script>);

impl ScriptTable {
    /// Takes up a status; returns the script and what changed, which may be nothing. `None` if there are too many.
    pub(crate) fn apply(&mut self, status: &ScriptStatus) -> Option<(Script, Vec<ScriptChange>)> {
        let script = Script::of(status);
        if status.removed {
            let known = self.0.remove(&script.name);
            return Some((script, known.map(|_| ScriptChange::Removed).into_iter().collect()));
        }
        if self.0.len() >= MAX_SCRIPTS && !self.0.contains_key(&script.name) {
            return None;
        }
        let known = self.0.get(&script.name);
        let loaded = |known: &Script| (known.sha256.clone(), known.loads);
        let problem = known.and_then(|known| known.problem.as_ref());
        let mut changes = Vec::new();
        // Also when what was refused is taken back, and the last good one is the newest again.
        let is_mended = problem.is_some() && script.problem.is_none();
        if script.sha256.is_some() && (is_mended || known.map(loaded) != Some(loaded(&script))) {
            changes.push(ScriptChange::Loaded);
        }
        if script.problem.is_some() && problem != script.problem.as_ref() {
            changes.push(ScriptChange::Refused);
        }
        self.0.insert(script.name.clone(), script.clone());
        Some((script, changes))
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<Script> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
#[path = "scripts_tests.rs"]
mod tests;
