//! Counters, gauges and histograms with labels, and a bound on their series.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use talon_proto::agent::{Bucket, MetricFamily, Sample};
use talon_sanitize::prefix;

/// The most series of one family. 500: a hundred tools with five outcomes. Further label values are counted
/// under [`OTHER`], so that sums stay correct.
const MAX_SERIES: usize = 500;
/// The longest value of a label; names are far shorter, and longer values are truncated.
const MAX_VALUE_BYTES: usize = 128;
/// The label value under which further series are counted.
const OTHER: &str = "(other)";

/// Upper bounds in seconds: from a tool that answers at once to a model that thinks for minutes.
const SECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FamilyKind {
    /// Only goes up.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A histogram of durations.
    Histogram,
}

impl FamilyKind {
    fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// All series of one metric name.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    help: &'static str,
    kind: FamilyKind,
    labels: &'static [&'static str],
    series: Mutex<BTreeMap<Vec<String>, Series>>,
}

#[derive(Debug, Default, Clone)]
struct Series {
    value: f64,
    buckets: [u64; SECONDS.len()],
    count: u64,
}

impl Family {
    pub(super) const fn new(
        kind: FamilyKind,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, help, kind, labels, series: Mutex::new(BTreeMap::new()) }
    }

    fn with(&self, values: &[&str], step: impl FnOnce(&mut Series)) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        let mut series = self.series.lock();
        let mut key: Vec<String> =
            values.iter().map(|value| prefix(value, MAX_VALUE_BYTES).to_owned()).collect();
        if series.len() >= MAX_SERIES && !series.contains_key(&key) {
            key = vec![OTHER.to_owned(); values.len()];
        }
        step(series.entry(key).or_default());
    }

    /// Starts these series at 0, where all label values are known in advance.
    pub(super) fn counting_from_zero(self, all: &[&[&str]]) -> Self {
        for values in all {
            self.add(values, 0.0);
        }
        self
    }

    /// Adds to a counter.
    pub(super) fn add(&self, values: &[&str], more: f64) {
        self.with(values, |series| series.value += more);
    }

    /// Adds 1 to a counter.
    pub(super) fn increment(&self, values: &[&str]) {
        self.add(values, 1.0);
    }

    /// Sets a gauge.
    pub(super) fn set(&self, values: &[&str], value: f64) {
        self.with(values, |series| series.value = value);
    }

    /// Clears a gauge; its current series are set again afterwards.
    pub(super) fn clear(&self) {
        self.series.lock().clear();
    }

    /// Adds a duration to a histogram.
    pub(super) fn observe_seconds(&self, values: &[&str], seconds: f64) {
        self.with(values, |series| {
            series.value += seconds;
            series.count += 1;
            for (bound, bucket) in SECONDS.iter().zip(&mut series.buckets) {
                *bucket += u64::from(seconds <= *bound);
            }
        });
    }

    /// Name, kind and labels.
    #[cfg(test)]
    pub(super) fn description(&self) -> (&'static str, &'static str, &'static [&'static str]) {
        (self.name, self.kind.word(), self.labels)
    }

    /// The family as a protocol message.
    pub(super) fn to_wire(&self) -> MetricFamily {
        let series = self.series.lock();
        // A rate of events that have not happened yet is 0, not "no data", which alerts take for a fault.
        let none = (self.kind == FamilyKind::Counter && series.is_empty()).then(Sample::default);
        let samples = series.iter().map(|(values, series)| {
            let labels = self.labels.iter().zip(values);
            let mut sample = Sample {
                labels: labels.map(|(label, value)| ((*label).to_owned(), value.clone())).collect(),
                value: series.value,
                ..Sample::default()
            };
            if self.kind == FamilyKind::Histogram {
                let bounds = SECONDS.iter().copied().zip(series.buckets);
                sample.buckets = bounds.map(|(bound, count)| Bucket { bound, count }).collect();
                sample.buckets.push(Bucket { bound: f64::INFINITY, count: series.count });
                sample.count = series.count;
            }
            sample
        });
        MetricFamily {
            name: self.name.to_owned(),
            kind: self.kind.word().to_owned(),
            help: self.help.to_owned(),
            samples: samples.chain(none).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-54
    #[test]
    fn what_has_no_room_is_counted_under_one_name() {
        let family = Family::new(FamilyKind::Counter, "talon_agent_x_total", &["tool", "outcome"], "…");
        for tool in 0..MAX_SERIES + 7 {
            family.increment(&[&tool.to_string(), "ok"]);
        }
        family.increment(&["0", "ok"]);
        let samples = family.to_wire().samples;
        assert_eq!(samples.len(), MAX_SERIES + 1);
        let of = |tool: &str| {
            samples.iter().find(|sample| sample.labels["tool"] == tool).map(|sample| sample.value)
        };
        assert_eq!((of(OTHER), of("0")), (Some(7.0), Some(2.0)));
        let long = Family::new(FamilyKind::Gauge, "talon_agent_x", &["tool"], "…");
        long.set(&[&"ä".repeat(MAX_VALUE_BYTES)], 1.0);
        assert!(long.to_wire().samples[0].labels["tool"].len() <= MAX_VALUE_BYTES);
    }

    #[test]
    fn a_counter_has_a_sample_before_anything_was_counted() {
        let fallbacks = Family::new(FamilyKind::Counter, "talon_agent_x_total", &["from", "to"], "…");
        let sample = fallbacks.to_wire().samples.remove(0);
        assert!(sample.labels.is_empty() && sample.value == 0.0, "{sample:?}");
        fallbacks.increment(&["a", "b"]);
        let samples = fallbacks.to_wire().samples;
        assert!(samples.len() == 1 && samples[0].labels["from"] == "a", "{samples:?}");
        let known = Family::new(FamilyKind::Counter, "talon_agent_y_total", &["limit"], "…")
            .counting_from_zero(&[&["session"], &["day"]]);
        known.increment(&["day"]);
        let values: Vec<_> =
            known.to_wire().samples.iter().map(|it| (it.labels["limit"].clone(), it.value)).collect();
        assert_eq!(values, [("day".to_owned(), 1.0), ("session".to_owned(), 0.0)]);
        let gauge = Family::new(FamilyKind::Gauge, "talon_agent_z", &["provider"], "…");
        assert!(gauge.to_wire().samples.is_empty(), "nobody knows what it would be");
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let family = Family::new(FamilyKind::Histogram, "talon_agent_x_seconds", &[], "…");
        for seconds in [0.001, 0.3, 1e6] {
            family.observe_seconds(&[], seconds);
        }
        let sample = family.to_wire().samples.remove(0);
        let count = |bound: f64| {
            sample.buckets.iter().find(|bucket| bucket.bound == bound).map(|bucket| bucket.count)
        };
        assert_eq!((count(0.005), count(0.5), count(300.0)), (Some(1), Some(2), Some(2)));
        assert_eq!((count(f64::INFINITY), sample.count), (Some(3), 3));
    }
}
