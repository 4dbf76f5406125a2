//! What the metrics count of the policy's decisions.

use std::collections::BTreeMap;

use talon_shadow_policy::{HoldReason, SenderState};

use super::record::SenderRecord;
use crate::metrics::Metrics;

/// Counts what was held back between two states of a person.
pub(super) fn count_held_back(metrics: &Metrics, before: Option<&SenderRecord>, after: &SenderRecord) {
    let earlier = before.map(|record| held_back(&record.policy)).unwrap_or_default();
    for (reason, count) in held_back(&after.policy) {
        let more = count.saturating_sub(earlier.get(&reason).copied().unwrap_or_default());
        if more > 0 {
            metrics.count_shadow_held_back(reason.word(), more);
        }
    }
}

/// Over all triggers.
fn held_back(policy: &SenderState) -> BTreeMap<HoldReason, u64> {
    let mut all = BTreeMap::new();
    for (reason, count) in policy.triggers.values().flat_map(|stats| &stats.held_back) {
        *all.entry(*reason).or_default() += *count;
    }
    all
}
