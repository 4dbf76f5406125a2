//! A job, checked.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use talon_agent_settings::Money;

use crate::entry::Overlap;
use crate::jitter::jitter;
use crate::job_id::JobId;
use crate::missed::MissedPolicy;
use crate::recurrence::Recurrence;

/// The longest wait before a retry: later, what failed is rather a matter of the next planned time.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(3600);

/// What a job does.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Asks the agent.
    Ask {
        /// The question.
        text: String,
        /// The name of the conversation; `None` for a new one each time.
        session: Option<String>,
        /// The most that an attempt may cost.
        budget: Option<Money>,
    },
    /// Calls an action.
    Action {
        /// `plugin.action`.
        action: String,
        /// Its arguments.
        args: Map<String, Value>,
    },
}

/// A job, checked: see [`ScheduleEntry`](crate::ScheduleEntry) for the meaning of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its planned times.
    pub recurrence: Recurrence,
    /// The most by which it begins later than planned.
    pub jitter: Duration,
    /// What becomes of missed times.
    pub missed: MissedPolicy,
    /// What happens while it still runs.
    pub overlap: Overlap,
    /// The number of retries.
    pub retries: u32,
    /// The time before the first retry.
    pub retry_after: Duration,
    /// The most time of an attempt.
    pub deadline: Duration,
    /// Whether it rests by the configuration.
    pub paused: bool,
    /// Whether a plugin proposed it and the operator accepted it; otherwise it is the configuration's.
    pub accepted: bool,
    /// The notification entry that also gets the answer.
    pub deliver: Option<String>,
    /// What it does.
    pub target: Target,
}

impl Job {
    /// When an occurrence begins: the planned time with its jitter, which is less than the time to the next
    /// planned one, so that occurrences begin in their order.
    #[must_use]
    pub fn begins(&self, planned: Timestamp) -> Timestamp {
        if self.jitter.is_zero() {
            return planned;
        }
        let next = self.recurrence.next_after(planned);
        let gap = next.map_or(self.jitter, |next| planned.duration_until(next).unsigned_abs());
        let delay = jitter(&self.id, planned, self.jitter.min(gap));
        planned.checked_add(delay).unwrap_or(planned)
    }

    /// The wait before the next attempt, after `failed` of them.
    #[must_use]
    pub fn retry_wait(&self, failed: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        self.retry_after.saturating_mul(doubled).min(MAX_RETRY_WAIT.max(self.retry_after))
    }

    /// A digest of what decides when it runs. A job whose digest changed begins anew: its times before the
    /// change are not missed ones.
    #[must_use]
    pub fn timing_digest(&self) -> String {
        let text = match &self.recurrence {
            Recurrence::Cron { cron, zone } => format!("cron {cron} {zone}"),
            Recurrence::Every(interval) => format!("every {interval}"),
            Recurrence::At(at) => format!("at {at}"),
        };
        let digest: [u8; 32] = Sha256::digest(format!("{text} paused={}", self.paused)).into();
        digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
