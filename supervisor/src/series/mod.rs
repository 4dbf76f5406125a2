//! What happened in the last day, in steps of ten seconds: for plots. In memory alone, bounded, and only while there is a gateway to show it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use talon_plugin::{Registry, State};
use talon_proto::host::{PluginCounters, SeriesSample};
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use crate::dispatch::Dispatcher;
use crate::to_wire::{count, unix_ms};

/// How far samples lie apart: short enough to see a burst, and a day of them is under a megabyte.
pub const STEP: Duration = Duration::from_secs(10);
/// A day of samples. The oldest make room.
pub const MAX_SAMPLES: usize = 24 * 60 * 6;

/// The samples. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Series(Arc<Mutex<VecDeque<SeriesSample>>>);

impl Series {
    /// The samples after this time, oldest first.
    #[must_use]
    pub fn after(&self, unix_ms: u64) -> Vec<SeriesSample> {
        let samples = self.0.lock();
        let from = samples.partition_point(|sample| sample.unix_ms <= unix_ms);
        samples.range(from..).copied().collect()
    }

    fn add(&self, sample: SeriesSample) {
        let mut samples = self.0.lock();
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Takes a sample at each step, until the handle is dropped.
    pub fn record(&self, registry: &Registry, dispatcher: &Arc<Dispatcher>) -> AbortOnDropHandle<()> {
        let (series, registry, dispatcher) = (self.clone(), registry.clone(), Arc::clone(dispatcher));
        AbortOnDropHandle::new(tokio::spawn(async move {
            let mut counted = PluginCounts::default();
            let mut steps = tokio::time::interval(STEP);
            steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first one is due at once, and has nothing to compare with.
            loop {
                steps.tick().await;
                series.add(sample(&registry, &dispatcher, &mut counted));
            }
        }))
    }
}

/// What was counted of each plugin at the sample before.
#[derive(Debug, Default)]
struct PluginCounts(HashMap<String, PluginCounters>);

impl PluginCounts {
    /// Adds what each plugin counted since the sample before. A counter that is smaller than before began anew.
    fn add(&mut self, to: &mut SeriesSample, plugins: Vec<(String, PluginCounters)>) {
        let mut before = std::mem::take(&mut self.0);
        for (name, now) in plugins {
            let old = before.remove(&name).filter(|old| old.calls <= now.calls).unwrap_or_default();
            to.calls += now.calls.saturating_sub(old.calls);
            to.tool_errors += now.tool_errors.saturating_sub(old.tool_errors);
            to.refusals += now.refusals.saturating_sub(old.refusals);
            to.faults += now.faults.saturating_sub(old.faults);
            to.tainted += now.tainted.saturating_sub(old.tainted);
            to.p50_us = to.p50_us.max(now.p50_us);
            to.p99_us = to.p99_us.max(now.p99_us);
            self.0.insert(name, now);
        }
    }
}

fn sample(registry: &Registry, dispatcher: &Dispatcher, counted: &mut PluginCounts) -> SeriesSample {
    let plugins = registry.list();
    let mut sample = SeriesSample {
        unix_ms: unix_ms(SystemTime::now()),
        plugins: count(plugins.len()),
        ..SeriesSample::default()
    };
    let mut counters = Vec::with_capacity(plugins.len());
    for plugin in &plugins {
        let gauge = dispatcher.gauge(plugin);
        sample.calls_in_flight += count(gauge.in_flight);
        sample.calls_waiting += count(gauge.waiting);
        sample.plugins_ready += u32::from(plugin.snapshot().state == State::Ready);
        counters.push((plugin.name().to_string(), gauge.counters));
    }
    counted.add(&mut sample, counters);
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: u64) -> PluginCounters {
        PluginCounters { calls, p99_us: calls, ..PluginCounters::default() }
    }

    // Promises: GW-132
    #[test]
    fn a_sample_has_what_came_since_the_one_before() {
        let mut counted = PluginCounts::default();
        let mut take = |plugins: &[(&str, u64)]| {
            let mut sample = SeriesSample::default();
            counted.add(
                &mut sample,
                plugins.iter().map(|(name, count)| ((*name).to_owned(), calls(*count))).collect(),
            );
            sample.calls
        };
        assert_eq!(take(&[("a", 5), ("b", 2)]), 7);
        assert_eq!(take(&[("a", 6), ("b", 2)]), 1);
        // One was removed, and the other counts anew.
        assert_eq!(take(&[("a", 3)]), 3);
    }

    // Promises: GW-132
    #[test]
    fn a_day_is_kept_and_the_oldest_make_room() {
        let series = Series::default();
        for at in 1..=MAX_SAMPLES as u64 + 5 {
            series.add(SeriesSample { unix_ms: at, ..SeriesSample::default() });
        }
        let all = series.after(0);
        assert_eq!((all.len(), all[0].unix_ms), (MAX_SAMPLES, 6));
        assert_eq!(series.after(MAX_SAMPLES as u64).len(), 5);
        assert!(series.after(u64::MAX).is_empty());
    }
}
