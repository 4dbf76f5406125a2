//! The outcome of a reload, or of the replacement of a plugin.

use std::path::PathBuf;

use talon_plugin::ReplaceError;
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::RejectedPlugin;
use talon_sanitize::{Raw, Sanitized};

use super::plan::{PlanStep, StepAction};

/// What a reload did, or would do.
#[derive(Debug, Clone, Default)]
pub struct ReloadOutcome {
    /// Whether the configuration is in force.
    pub accepted: bool,
    /// Why not, as `talon config check` reports it.
    pub problems: Vec<String>,
    /// What is allowed but probably a mistake, and what could not be applied.
    pub warnings: Vec<String>,
    /// Changed keys that apply from now on.
    pub changed: Vec<String>,
    /// Changed keys that apply after a restart.
    pub needs_restart: Vec<String>,
    /// The outcome for each affected plugin.
    pub plugins: Vec<PluginOutcome>,
    /// The number of unaffected plugins.
    pub left: usize,
    /// The file that was read.
    pub config_file: Option<PathBuf>,
}

/// The outcome for one plugin.
#[derive(Debug, Clone)]
pub struct PluginOutcome {
    /// Its name.
    pub plugin: String,
    /// `added`, `removed`, `replaced`, `changed`, `kept` or `refused`.
    pub what: &'static str,
    /// Why, or what differs.
    pub reason: Sanitized,
}

impl PluginOutcome {
    /// The outcome of a step that succeeds.
    pub(super) fn planned(step: &PlanStep) -> Self {
        let what = match step.action {
            StepAction::Add(_) => "added",
            StepAction::Remove => "removed",
            StepAction::Replace(_) => "replaced",
            StepAction::Change(_) => "changed",
            StepAction::Refuse => "refused",
        };
        Self { plugin: step.plugin.to_string(), what, reason: Raw::from(&step.why).line() }
    }

    /// The outcome for a plugin that does not run and is not started.
    pub(super) fn not_started(refused: &RejectedPlugin) -> Self {
        let plugin = Raw::from(&refused.name).line().into_string();
        Self { plugin, what: "refused", reason: Raw::from(&refused.reason).line() }
    }

    /// Replaces the planned outcome.
    pub(super) fn instead(self, what: &'static str, why: impl std::fmt::Display) -> Self {
        Self { what, reason: Raw::of(why).line(), ..self }
    }
}

/// Why a plugin was not replaced. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceFailure {
    /// Neither the configuration nor the plugin directory has it any more.
    #[error(
        "{plugin} is neither in the configuration nor in plugin_dir any more, and keeps running; put it back, or stop it with \
         `talon plugin stop {plugin}`"
    )]
    Gone {
        /// Which plugin.
        plugin: PluginName,
    },
    /// It does not pass its checks.
    #[error("{plugin} is refused in its new version, and the old one keeps running: {reason}")]
    Refused {
        /// Which plugin.
        plugin: PluginName,
        /// Why.
        reason: Sanitized,
    },
    /// It was not replaced.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}
