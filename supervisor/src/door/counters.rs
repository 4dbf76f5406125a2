//! What became of a plugin's calls, in numbers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use talon_guard::{Guarded, Outcome};
use talon_proto::host::PluginCounters;

/// The calls of one plugin since the supervisor started. Bounded: the families are the sanitizer's own few words.
#[derive(Debug, Default)]
pub(super) struct Counters {
    calls: AtomicU64,
    tool_errors: AtomicU64,
    refusals: AtomicU64,
    faults: AtomicU64,
    truncated: AtomicU64,
    tainted: AtomicU64,
    neutralised: Sums,
    flagged: Sums,
}

/// Sums by a word of the guard's own.
#[derive(Debug, Default)]
struct Sums(Mutex<BTreeMap<&'static str, u64>>);

impl Sums {
    fn add(&self, counts: impl Iterator<Item = (&'static str, u32)>) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (word, count) in counts {
            *sums.entry(word).or_default() += u64::from(count);
        }
    }

    fn read(&self) -> HashMap<String, u64> {
        let sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sums.iter().map(|(word, sum)| ((*word).to_owned(), *sum)).collect()
    }
}

impl Counters {
    /// A call begins. One whose caller goes away counts here and nowhere else.
    pub(super) fn begin(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// A call ended.
    pub(super) fn end(&self, answer: &Guarded) {
        match answer.outcome() {
            Outcome::Ok => {}
            Outcome::ToolError => add(&self.tool_errors),
            Outcome::Refused { .. } => add(&self.refusals),
            Outcome::HostFault { .. } => add(&self.faults),
        }
        let report = answer.report();
        if report.truncated() {
            add(&self.truncated);
        }
        if !report.tainted_by.is_empty() {
            add(&self.tainted);
        }
        // The rare cases: most answers are clean, and take no lock.
        if !report.neutralised.is_empty() {
            self.neutralised.add(report.neutralised.iter().map(|(family, count)| (*family, *count)));
        }
        if !report.flags.is_empty() {
            self.flagged.add(report.flags.iter().map(|flag| (*flag, 1)));
        }
    }

    /// The numbers for the wire; those about log lines are the plugin's and stay 0.
    pub(super) fn read(&self) -> PluginCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PluginCounters {
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

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
