//! What came of a reload.

use std::path::PathBuf;

use talon_sanitize::{Raw, Sanitized};

use super::plan::{Step, What};

/// What a reload did, or would do.
#[derive(Debug, Clone, Default)]
pub struct Reloaded {
    /// Whether the configuration is in force.
    pub accepted: bool,
    /// Why not, as `talon config check` says it.
    pub problems: Vec<String>,
    /// What is allowed but probably not meant, and what of the configuration could not be done.
    pub warnings: Vec<String>,
    /// Keys of which the value differs and that hold from now on.
    pub changed: Vec<String>,
    /// Keys of which the value differs and that hold after the next start.
    pub needs_restart: Vec<String>,
    /// What became of the plugins that were touched.
    pub plugins: Vec<Change>,
    /// How many were not.
    pub left: usize,
    /// The file that was read.
    pub config_file: Option<PathBuf>,
}

/// What became of one plugin.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its name.
    pub plugin: String,
    /// `added`, `removed`, `replaced`, `changed`, `kept` or `refused`.
    pub what: &'static str,
    /// Why, or what of it differs.
    pub reason: Sanitized,
}

impl Change {
    /// What a step comes to if nothing goes wrong.
    pub(super) fn planned(step: &Step) -> Self {
        let what = match step.what {
            What::Add(_) => "added",
            What::Remove => "removed",
            What::Replace(_) => "replaced",
            What::Change(_) => "changed",
            What::Refuse => "refused",
        };
        Self { plugin: step.plugin.to_string(), what, reason: Raw::from(&step.why).line() }
    }

    /// What it came to instead.
    pub(super) fn instead(self, what: &'static str, why: impl std::fmt::Display) -> Self {
        Self { what, reason: Raw::of(why).line(), ..self }
    }
}
