//! What became of a plugin's calls, in numbers.

use std::collections::BTreeMap;
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
    neutralised: Mutex<BTreeMap<&'static str, u64>>,
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
        if report.bytes_left_out > 0 {
            add(&self.truncated);
        }
        if !report.neutralised.is_empty() {
            let mut sums = self.neutralised.lock().unwrap_or_else(PoisonError::into_inner);
            for (family, count) in &report.neutralised {
                *sums.entry(family).or_default() += u64::from(*count);
            }
        }
    }

    /// The numbers for the wire; those about log lines are the plugin's and stay 0.
    pub(super) fn read(&self) -> PluginCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sums = self.neutralised.lock().unwrap_or_else(PoisonError::into_inner);
        PluginCounters {
            calls: read(&self.calls),
            tool_errors: read(&self.tool_errors),
            refusals: read(&self.refusals),
            faults: read(&self.faults),
            truncated: read(&self.truncated),
            neutralised: sums.iter().map(|(family, sum)| ((*family).to_owned(), *sum)).collect(),
            ..PluginCounters::default()
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
