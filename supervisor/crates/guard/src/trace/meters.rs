//! The series of one plugin.
//!
//! Each is registered with its first count. Most of the fifty that a plugin can have are never used, and one
//! takes a quarter of a KiB wherever it is stored, mostly for its labels: with hundreds of plugins that is
//! more than their connections take.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram};

use crate::reason;
use crate::report::Report;

/// The outcome of nearly all calls.
const OK: &str = "ok";

/// The outcome of a call whose caller went away before there was one.
pub(super) const CANCELLED: &str = "cancelled";

/// How a call can end.
const OUTCOMES: [&str; 5] = [OK, reason::TOOL_ERROR, "refused", "host_fault", CANCELLED];

/// The reason label of reasons that are not in [`reason::ALL`].
const OTHER: &str = "other";

/// The sums over reports, in the order of [`sums`].
const SUMS: [&str; 7] = [
    "talon_guard_bytes_in_total",
    "talon_guard_bytes_out_total",
    "talon_guard_bytes_left_out_total",
    "talon_guard_truncated_total",
    "talon_guard_structured_as_text_total",
    "talon_guard_tainted_total",
    "talon_guard_paged_total",
];

fn sums(report: &Report) -> [u64; SUMS.len()] {
    [
        report.bytes_in as u64,
        report.bytes_out as u64,
        report.bytes_left_out as u64,
        u64::from(report.truncated()),
        u64::from(report.structured_as_text),
        u64::from(!report.tainted_by.is_empty()),
        u64::from(report.page.is_some()),
    ]
}

#[derive(Debug)]
pub(super) struct Meters {
    plugin: String,
    /// Successful calls. The other series are looked up each time.
    ok: OnceLock<Counter>,
    /// By outcome.
    durations: [OnceLock<Histogram>; OUTCOMES.len()],
    sums: [OnceLock<Counter>; SUMS.len()],
}

impl Meters {
    pub(super) fn new(plugin: String) -> Self {
        Self { plugin, ok: OnceLock::new(), durations: Default::default(), sums: Default::default() }
    }

    pub(super) fn count(&self, outcome: &'static str, reason: &'static str, took: Duration) {
        if outcome == OK {
            self.ok.get_or_init(|| self.calls(OK, "")).increment(1);
        } else {
            let known = reason == CANCELLED || reason::ALL.contains(&reason);
            self.calls(outcome, if known { reason } else { OTHER }).increment(1);
        }
        if let Some(place) = OUTCOMES.iter().position(|word| *word == outcome) {
            let duration = self.durations[place].get_or_init(|| {
                let labels = [self.label(), ("outcome", outcome.to_owned())];
                metrics::histogram!("talon_guard_call_duration_seconds", &labels)
            });
            duration.record(took);
        }
    }

    fn calls(&self, outcome: &str, reason: &str) -> Counter {
        let labels = [self.label(), ("outcome", outcome.to_owned()), ("reason", reason.to_owned())];
        metrics::counter!("talon_guard_calls_total", &labels)
    }

    pub(super) fn add(&self, report: &Report) {
        for ((name, series), sum) in SUMS.into_iter().zip(&self.sums).zip(sums(report)) {
            if sum > 0 {
                series.get_or_init(|| metrics::counter!(name, &[self.label()])).increment(sum);
            }
        }
        // The rare case: most answers hold no control syntax.
        if report.neutralised.is_empty() && report.flags.is_empty() {
            return;
        }
        for (family, count) in &report.neutralised {
            let labels = [self.label(), ("family", (*family).to_owned())];
            metrics::counter!("talon_guard_neutralised_total", &labels).increment(u64::from(*count));
        }
        for ((family, kind), count) in &report.kinds {
            let labels = [self.label(), ("family", (*family).to_owned()), ("kind", (*kind).to_owned())];
            metrics::counter!("talon_guard_neutralised_kinds_total", &labels).increment(u64::from(*count));
        }
        for flag in &report.flags {
            let labels = [self.label(), ("flag", (*flag).to_owned())];
            metrics::counter!("talon_guard_flagged_total", &labels).increment(1);
        }
    }

    fn label(&self) -> (&'static str, String) {
        ("plugin", self.plugin.clone())
    }
}
