//! How the loop is, over all people, for operators.

use talon_proto::agent::ShadowStatus;

use super::people::PeopleCounts;
use super::record::now;
use super::redaction::redact_limits;
use super::shadow_loop::{ShadowLoop, WAITING};

impl ShadowLoop {
    /// A person's watcher sent something; `limits` are what it cannot watch, of which secrets are replaced. While the loop is off nothing is
    /// kept of it: once it is on, the watcher is heard within a minute.
    pub(crate) fn hear_watcher(&self, sender: &str, limits: &[String]) {
        if !self.keys().enabled {
            return;
        }
        let (limits, redacted) = redact_limits(limits);
        self.watchers.hear(sender, &limits);
        self.metrics.count_shadow_redactions(redacted);
    }

    /// The loop over all people; `None` while it is off. `problem` says why no model can be asked. It never waits: while something is
    /// written, people are counted as they were before.
    pub(crate) fn status(&self, problem: String) -> Option<ShadowStatus> {
        let keys = self.keys();
        if !keys.enabled {
            return None;
        }
        let (counts, heard, quiet) = (self.count_people(), self.watchers.summary(), keys.quiet());
        Some(ShadowStatus {
            watchers: heard.watchers,
            watchers_connected: heard.connected,
            watcher_seen_unix_ms: heard.seen_unix_ms,
            limits: heard.limits,
            paused: counts.paused,
            budget_spent: counts.budget_spent,
            quiet_hours: quiet.map(|hours| hours.to_string()).unwrap_or_default(),
            local_time: chrono::Local::now().format("%H:%M %:z").to_string(),
            quiet: quiet.is_some_and(|hours| hours.contains(now().local_minute)),
            local_only: keys.local_only,
            problem,
            waiting: counts.waiting,
        })
    }

    fn count_people(&self) -> PeopleCounts {
        let Ok(inner) = self.inner.try_lock() else { return *self.people.lock() };
        let (keys, now) = (self.keys(), now());
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let records = || inner.stored.senders.values();
        let ghosts = inner.stored.ghosts.values().filter_map(|one| one.ghost.as_ref());
        let counts = PeopleCounts {
            paused: count(records().filter(|record| record.policy.is_paused(now)).count()),
            budget_spent: count(
                records()
                    .filter(|record| record.policy.spent_budget(&record.limits(&keys), now).is_some())
                    .count(),
            ),
            waiting: count(ghosts.filter(|ghost| ghost.state == WAITING).count()),
        };
        *self.people.lock() = counts;
        counts
    }
}
