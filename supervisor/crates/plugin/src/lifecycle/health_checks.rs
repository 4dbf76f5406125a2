//! The health checks of one process, and when a failed one counts.
//!
//! A plugin with one thread cannot answer a check while it works on a call, so silence is excused by the
//! calls in flight until the latest of their deadlines. Only calls that were in flight when the silence began
//! excuse it: if later ones did, a hung plugin with frequent calls would never be detected. An answered check
//! or call is a sign of life and resets the silence. A plugin that answers that it does not serve is not
//! silent.

use std::time::Duration;

use talon_plugin_config::spec::LifecycleSettings;
use talon_sanitize::Sanitized;

use super::MachineTime;
use super::event::CheckResult;

/// The shortest interval between checks, whatever is configured: each check is a call to the plugin.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// The health checks of a process that is up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HealthChecks {
    /// Failures in a row, without excused ones.
    failures: u32,
    /// When the next check is due; `None` while one is in progress.
    due: Option<MachineTime>,
    /// Until when the current silence is excused.
    excused_until: Option<MachineTime>,
}

/// The meaning of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckVerdict {
    /// It serves.
    Healthy,
    /// It was silent, but calls in flight excuse that.
    Excused,
    /// One more failure in a row.
    Failed { cause: Sanitized },
}

impl HealthChecks {
    /// The checks of a process that has just reported that it serves.
    pub(crate) fn new(policy: &LifecycleSettings, now: MachineTime) -> Self {
        Self { failures: 0, due: Some(now.saturating_add(interval(policy))), excused_until: None }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn due(&self) -> Option<MachineTime> {
        self.due
    }

    /// Marks a check as in progress.
    pub(crate) fn begin(&mut self) {
        self.due = None;
    }

    /// Evaluates a check and schedules the next one. After a failed check the next comes soon, because calls
    /// wait for it.
    pub(crate) fn judge(
        &mut self,
        verdict: CheckResult,
        policy: &LifecycleSettings,
        now: MachineTime,
    ) -> CheckVerdict {
        let soon = interval(policy).min(policy.health_check_timeout.max(SHORTEST_INTERVAL));
        let cause = match verdict {
            CheckResult::Serving => {
                *self = Self::new(policy, now);
                return CheckVerdict::Healthy;
            }
            CheckResult::NotServing => "it says that it does not serve".into(),
            CheckResult::NoAnswer { cause, busy_until, answered } => {
                if answered {
                    self.excused_until = None;
                }
                let excused_until = *self.excused_until.get_or_insert(busy_until.unwrap_or(now));
                if now < excused_until {
                    self.due = Some(now.saturating_add(soon));
                    return CheckVerdict::Excused;
                }
                cause
            }
        };
        self.failures = self.failures.saturating_add(1);
        self.due = Some(now.saturating_add(soon));
        CheckVerdict::Failed { cause }
    }
}

fn interval(policy: &LifecycleSettings) -> Duration {
    policy.health_check_interval.max(SHORTEST_INTERVAL)
}
