//! Counters of a plugin's calls and their outcomes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use talon_guard::{Guarded, Outcome, reason};
use talon_plugin::Plugin;
use talon_proto::host::PluginCounters;

use super::call_finished::CallSummary;
use super::latency_window::LatencyWindow;

/// How many actions of one plugin are counted by name: the declared ones that are called first. Few plugins
/// have more, and each name costs a handful of series in the monitoring system. Later ones are counted as
/// [`OTHER_ACTION`].
const MAX_ACTIONS: usize = 64;
/// The name under which all other actions, and calls of unknown actions, are counted. It is not a valid name
/// of an action.
pub const OTHER_ACTION: &str = "(other)";

/// The possible outcomes of a call: the values of `ExecuteResponse.outcome`, and `cancelled` if the caller
/// did not wait.
pub const OUTCOMES: [&str; 5] = ["ok", "tool_error", "refused", "host_fault", CANCELLED];
const CANCELLED: &str = "cancelled";

/// How many calls of an action ended with each of [`OUTCOMES`].
pub type OutcomeCounts = [u64; OUTCOMES.len()];

/// The calls of one plugin since the supervisor started. Memory is bounded: the sanitizer's families are a
/// small fixed set, and the number of actions is limited.
#[derive(Debug, Default)]
pub(super) struct Counters {
    calls: AtomicU64,
    shed: AtomicU64,
    duration_us: AtomicU64,
    recent: Mutex<LatencyWindow>,
    actions: Mutex<BTreeMap<String, OutcomeCounts>>,
    tool_errors: AtomicU64,
    refusals: AtomicU64,
    faults: AtomicU64,
    truncated: AtomicU64,
    tainted: AtomicU64,
    neutralised: LabelCounts,
    flagged: LabelCounts,
}

/// Sums by a label from the guard's fixed set.
#[derive(Debug, Default)]
struct LabelCounts(Mutex<BTreeMap<&'static str, u64>>);

impl LabelCounts {
    fn add(&self, counts: impl Iterator<Item = (&'static str, u32)>) {
        let mut sums = self.0.lock();
        for (word, count) in counts {
            *sums.entry(word).or_default() += u64::from(count);
        }
    }

    fn read(&self) -> BTreeMap<String, u64> {
        let sums = self.0.lock();
        sums.iter().map(|(word, sum)| ((*word).to_owned(), *sum)).collect()
    }
}

impl Counters {
    /// Starts counting a call; `plugin` is its target, if it exists.
    pub(super) fn begin<'a>(&'a self, call: &'a CallSummary, plugin: Option<&'a Plugin>) -> CountedCall<'a> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        CountedCall { counters: self, plugin, call, outcome: CANCELLED }
    }

    /// The outcomes of calls by action.
    pub(super) fn by_action(&self) -> Vec<(String, OutcomeCounts)> {
        self.actions.lock().iter().map(|(action, ends)| (action.clone(), *ends)).collect()
    }

    /// Calls that were refused because the queue was full.
    pub(super) fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    fn count(&self, action: &str, outcome: &'static str, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.duration_us.fetch_add(us, Ordering::Relaxed);
        self.recent.lock().add(took);
        let mut actions = self.actions.lock();
        let count_in = |ends: &mut OutcomeCounts| {
            let ends = ends.iter_mut().zip(OUTCOMES);
            ends.filter(|(_, word)| *word == outcome).for_each(|(count, _)| *count += 1);
        };
        // Usually the action has an entry already; then nothing is copied.
        if let Some(ends) = actions.get_mut(action) {
            return count_in(ends);
        }
        let action = if actions.len() < MAX_ACTIONS { action } else { OTHER_ACTION };
        count_in(actions.entry(action.to_owned()).or_default());
    }

    fn end(&self, answer: &Guarded) {
        match answer.outcome() {
            Outcome::Ok => {}
            Outcome::ToolError => add(&self.tool_errors),
            Outcome::Refused { reason, .. } => {
                add(&self.refusals);
                if *reason == reason::OVERLOADED {
                    add(&self.shed);
                }
            }
            Outcome::HostFault { .. } => add(&self.faults),
        }
        let report = answer.report();
        if report.truncated() {
            add(&self.truncated);
        }
        if !report.tainted_by.is_empty() {
            add(&self.tainted);
        }
        // Most answers are clean and take no lock.
        if !report.neutralised.is_empty() {
            self.neutralised.add(report.neutralised.iter().map(|(family, count)| (*family, *count)));
        }
        if !report.flags.is_empty() {
            self.flagged.add(report.flags.iter().map(|flag| (*flag, 1)));
        }
    }

    /// The counters for the wire. The plugin itself counts log lines, so those stay 0 here.
    pub(super) fn read(&self) -> PluginCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [p50_us, p99_us] = self.recent.lock().percentiles([50, 99]);
        PluginCounters {
            duration_us: read(&self.duration_us),
            p50_us,
            p99_us,
            calls: read(&self.calls),
            tool_errors: read(&self.tool_errors),
            refusals: read(&self.refusals),
            faults: read(&self.faults),
            truncated: read(&self.truncated),
            neutralised: self.neutralised.read(),
            tainted: read(&self.tainted),
            flagged: self.flagged.read(),
            ..PluginCounters::default()
        }
    }
}

/// One call in flight. If it is dropped before [`end`](Self::end), it counts as cancelled by the caller.
pub(super) struct CountedCall<'a> {
    counters: &'a Counters,
    plugin: Option<&'a Plugin>,
    call: &'a CallSummary,
    outcome: &'static str,
}

impl CountedCall<'_> {
    /// Records the outcome.
    pub(super) fn finish(mut self, answer: &Guarded) {
        self.outcome = answer.outcome().as_str();
        self.counters.end(answer);
    }
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        // Callers can invent names of actions; only those that the plugin declares are counted by name.
        let declared = |plugin: &Plugin| {
            plugin.capability().is_some_and(|capability| capability.actions.contains_key(&self.call.action))
        };
        let action = if self.plugin.is_some_and(declared) { &self.call.action } else { OTHER_ACTION };
        self.counters.count(action, self.outcome, self.call.accepted.elapsed());
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: METRIC-3
    #[test]
    fn actions_are_counted_by_name_up_to_a_bound() {
        let counters = Counters::default();
        for number in 0..MAX_ACTIONS + 10 {
            counters.count(&format!("a{number}"), "ok", Duration::from_millis(1));
        }
        counters.count("a0", CANCELLED, Duration::from_millis(1));
        let by_action: BTreeMap<String, OutcomeCounts> = counters.by_action().into_iter().collect();
        assert_eq!(by_action.len(), MAX_ACTIONS + 1);
        assert_eq!(by_action["a0"], [1, 0, 0, 0, 1]);
        assert_eq!(by_action[OTHER_ACTION], [10, 0, 0, 0, 0]);
        let read = counters.read();
        assert_eq!(read.duration_us, 1000 * (MAX_ACTIONS as u64 + 11));
        assert!(read.p50_us > 1000 && read.p99_us < 1200, "{read:?}");
    }
}
