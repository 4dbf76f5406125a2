//! Metrics of the shadow loop.

use talon_agent_settings::PICOS_PER_DOLLAR;
use talon_proto::agent::{ShadowLogEntry, ShadowStatus};

use super::Metrics;

impl Metrics {
    /// Counts an observation. `kind` is one that is known, or `(other)`.
    pub(crate) fn count_shadow_observation(&self, kind: &str, verdict: &str) {
        self.shadow_observations.increment(&[kind, verdict]);
    }

    /// Counts secrets that a watcher had left.
    pub(crate) fn count_shadow_redactions(&self, secrets: u32) {
        self.shadow_redactions.add(&[], secrets.into());
    }

    /// Counts findings that a rule held back.
    pub(crate) fn count_shadow_held_back(&self, rule: &str, findings: u64) {
        self.shadow_held_back.add(&[rule], findings as f64);
    }

    /// Counts a boundary at which a finding went on waiting.
    pub(crate) fn count_shadow_postponed(&self, rule: &str) {
        self.shadow_postponed.increment(&[rule]);
    }

    /// Counts what became of a question.
    pub(crate) fn count_shadow_question(&self, entry: &ShadowLogEntry) {
        self.shadow_questions.increment(&[&entry.outcome]);
        self.shadow_tokens.add(&["input"], entry.input_tokens as f64);
        self.shadow_tokens.add(&["output"], entry.output_tokens as f64);
        self.shadow_cost.add(&[], entry.cost_pico_usd as f64 / PICOS_PER_DOLLAR as f64);
    }

    /// Counts a ghost that was made, or what became of one.
    pub(crate) fn count_shadow_ghost(&self, what: &str) {
        self.shadow_ghosts.increment(&[what]);
    }

    /// Sets how the loop is, before it is read; `None` while it is off.
    pub(crate) fn set_shadow(&self, status: Option<&ShadowStatus>, dropped: u64) {
        self.shadow_dropped.set(&[], dropped as f64);
        let gauges = [
            &self.shadow_waiting,
            &self.shadow_watchers,
            &self.shadow_watcher_seen,
            &self.shadow_budget_spent,
        ];
        gauges.into_iter().for_each(super::family::Family::clear);
        let Some(status) = status else { return };
        self.shadow_waiting.set(&[], status.waiting.into());
        self.shadow_watchers.set(&[], status.watchers_connected.into());
        self.shadow_budget_spent.set(&[], status.budget_spent.into());
        if let Some(seen) = status.watcher_seen_unix_ms {
            self.shadow_watcher_seen.set(&[], seen as f64 / 1000.0);
        }
    }
}
