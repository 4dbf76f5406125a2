//! What is stored of one person, beside ghosts and log.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use talon_agent_settings::{ShadowKeys, milliseconds};
use talon_proto::agent::Observation;
use talon_shadow_policy::{PolicyLimits, SenderState, WallTime};
use talon_store::Timestamp;

use super::question::MAX_QUESTION_TOKENS;

/// What is stored of one person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SenderRecord {
    pub(super) sender: String,
    pub(super) policy: SenderState,
    /// The observations that wait or are asked about, by their ids: as their messages, in base64.
    observations: BTreeMap<String, String>,
    /// The id of the log's entry, and of the ghost, of the question that is being asked.
    pub(super) entry: Option<String>,
    /// What the person's own file says; the stricter one counts.
    pub(super) cooldown_ms: Option<u64>,
    pub(super) max_ghosts_per_hour: Option<u32>,
}

impl SenderRecord {
    pub(super) fn new(sender: &str) -> Self {
        Self { sender: sender.to_owned(), ..Self::default() }
    }

    /// Whether a restart with this record is as good as one with the other: ids alone are not worth a write, since events without a
    /// finding change nothing if they come again.
    pub(super) fn is_as_good_as(&self, other: &Self) -> bool {
        let without_ids = |record: &Self| {
            let mut record = record.clone();
            record.policy.known_ids.clear();
            record
        };
        without_ids(self) == without_ids(other)
    }

    pub(super) fn limits(&self, keys: &ShadowKeys) -> PolicyLimits {
        policy_limits(keys).stricter(self.cooldown_ms, self.max_ghosts_per_hour)
    }

    pub(super) fn keep(&mut self, observation: &Observation) {
        let encoded = STANDARD_NO_PAD.encode(observation.encode_to_vec());
        self.observations.insert(observation.id.clone(), encoded);
    }

    pub(super) fn observation(&self, id: &str) -> Option<Observation> {
        let bytes = STANDARD_NO_PAD.decode(self.observations.get(id)?).ok()?;
        Observation::decode(bytes.as_slice()).ok()
    }

    /// Removes the observations that nothing waits for any more.
    pub(super) fn tidy(&mut self, now: WallTime) {
        self.policy.tidy(now);
        let policy = &self.policy;
        self.observations.retain(|id, _| {
            policy.asking.as_deref() == Some(id) || policy.waiting.iter().any(|one| one.id == *id)
        });
    }
}

fn policy_limits(keys: &ShadowKeys) -> PolicyLimits {
    let muted = keys.muted_repositories.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    PolicyLimits {
        cooldown_ms: milliseconds(keys.cooldown.get()),
        max_ghosts_per_hour: keys.max_ghosts_per_hour,
        boundaries_only: keys.boundaries_only,
        quiet_hours: keys.quiet(),
        muted,
        tokens_per_day: keys.budget.tokens_per_day.into(),
        tokens_per_question: MAX_QUESTION_TOKENS,
        pico_usd_per_day: keys.budget.per_day.map(|money| saturated(money.picodollars())),
    }
}

/// Picodollars as they are stored: a budget of more than 18 million dollars is none.
pub(super) fn saturated(pico_usd: u128) -> u64 {
    u64::try_from(pico_usd).unwrap_or(u64::MAX)
}

/// Now, by both clocks.
pub(super) fn now() -> WallTime {
    use chrono::Timelike as _;
    let local = chrono::Local::now();
    let minute = u16::try_from(local.hour() * 60 + local.minute()).unwrap_or_default();
    WallTime { unix_ms: unix_ms(), local_minute: minute }
}

pub(super) fn unix_ms() -> u64 {
    Timestamp::now().as_millis().unsigned_abs()
}
