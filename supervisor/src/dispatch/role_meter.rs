//! Counts the calls of extensions by role.

use talon_guard::Guarded;

/// One call for an extension. Dropped before its end, it counts as cancelled.
pub(super) struct RoleMeter {
    role: &'static str,
    /// The configured plugin; `None` for a call that is not granted.
    plugin: Option<String>,
    outcome: &'static str,
}

impl RoleMeter {
    pub(super) fn start(role: &'static str, plugin: Option<String>) -> Self {
        Self { role, plugin, outcome: "cancelled" }
    }

    pub(super) fn finish(mut self, answer: &Guarded) {
        self.outcome = answer.outcome().as_str();
    }
}

impl Drop for RoleMeter {
    fn drop(&mut self) {
        // Names that a caller invents are no labels.
        let plugin = self.plugin.take().unwrap_or_else(|| "unknown".to_owned());
        metrics::counter!(
            "talon_extension_calls_total", "role" => self.role, "plugin" => plugin, "outcome" => self.outcome
        )
        .increment(1);
    }
}
