//! Reports the outcome of a reload: in the log, as an event and in metrics.

use std::time::SystemTime;

use talon_plugin::{EventKind, NewEvent};
use talon_sanitize::Raw;

use super::outcome::ReloadOutcome;
use super::reloader::Reloader;

/// Maximum length of the stored problems of a rejected configuration for `talon status`, in bytes: some ten
/// problems.
const MAX_PROBLEM_BYTES: usize = 4 << 10;

impl Reloader {
    /// The outcome of a rejected configuration. Reports it, unless it was a dry run.
    pub(super) fn refuse(&self, problems: Vec<String>, dry_run: bool) -> ReloadOutcome {
        if !dry_run {
            let text = problems.join("; ");
            let text = Raw::from(&text).line_within(MAX_PROBLEM_BYTES);
            tracing::error!("the configuration is refused, and the one before stays: {text}");
            self.parts().events.emit(
                NewEvent::new(EventKind::ConfigRefused, format!("refused, the one before stays: {text}"))
                    .field("problems", problems.len())
                    .field("reason", text.clone()),
            );
            self.set_problem(Some(text));
            metrics::counter!("talon_config_reloads_total", "outcome" => "refused").increment(1);
            metrics::gauge!("talon_config_refused").set(1.0);
        }
        let config_file = self.parts().loaded.file.clone();
        ReloadOutcome { problems, config_file, ..ReloadOutcome::default() }
    }

    /// Reports an accepted configuration.
    pub(super) fn report(&self, reloaded: &ReloadOutcome) {
        self.set_problem(None);
        metrics::counter!("talon_config_reloads_total", "outcome" => "accepted").increment(1);
        metrics::gauge!("talon_config_refused").set(0.0);
        // For display only: a clock before 1970 shows as 0.
        let at = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        metrics::gauge!("talon_config_loaded_timestamp_seconds").set(at.as_secs_f64());
        for warning in &reloaded.warnings {
            tracing::warn!("{warning}");
        }
        let (changed, later) = (reloaded.changed.join(", "), reloaded.needs_restart.join(", "));
        let plugins: Vec<String> =
            reloaded.plugins.iter().map(|change| format!("{} {}", change.plugin, change.what)).collect();
        let plugins = plugins.join(", ");
        tracing::info!(
            changed,
            needs_restart = later,
            plugins,
            left = reloaded.left,
            "the configuration was read anew"
        );
        self.parts().events.emit(
            NewEvent::new(EventKind::ConfigReloaded, format!("read anew; plugins: {plugins}"))
                .field("changed", changed)
                .field("needs_restart", later),
        );
    }
}
