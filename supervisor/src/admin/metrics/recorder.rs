//! Stores what crates record through the `metrics` facade until it is scraped.
//!
//! The exporter's own recorder stores every value of a histogram until the next scrape, and every series for
//! ever. Here a histogram consists of its buckets, so that memory does not grow without scrapes, and the
//! series of a removed plugin are deleted. Metrics and labels that are not in the [`catalogue`] are ignored,
//! so that no lower crate can add one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{
    Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use metrics_util::registry::{Registry, Storage};

use super::catalogue::{self, Metric, MetricKind, PLUGIN};
use super::page::MetricsPage;

/// The process's series.
static SERIES: OnceLock<Arc<Series>> = OnceLock::new();

/// Installs the recorder; what was registered before is not recorded. A second call returns the same series.
pub fn install() -> Arc<Series> {
    let series = SERIES.get_or_init(|| {
        let series = Arc::new(Series { registry: Registry::new(SeriesStorage) });
        // If a program that embeds us has installed another recorder, there is nothing to show from the
        // facade.
        let _ = metrics::set_global_recorder(Arc::clone(&series));
        register_series();
        series
    });
    Arc::clone(series)
}

/// Registers the supervisor's own series, so that they are on every page from the first one on.
fn register_series() {
    for name in
        ["talon_connections_flooded_total", "talon_watchdog_pings_total", "talon_watchdog_withheld_total"]
    {
        metrics::counter!(name).increment(0);
    }
    for outcome in ["accepted", "refused"] {
        metrics::counter!("talon_config_reloads_total", "outcome" => outcome).increment(0);
    }
    for name in ["talon_config_refused", "talon_taken_over_processes"] {
        metrics::gauge!(name).set(0.0);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    metrics::gauge!("talon_config_loaded_timestamp_seconds").set(now.as_secs_f64());
}

/// All recorded series.
pub struct Series {
    registry: Registry<Key, SeriesStorage>,
}

/// Creates storage for new series.
struct SeriesStorage;

impl Storage<Key> for SeriesStorage {
    type Counter = Arc<AtomicU64>;
    type Gauge = Arc<AtomicU64>;
    type Histogram = Arc<Buckets>;

    fn counter(&self, _: &Key) -> Self::Counter {
        Arc::default()
    }

    fn gauge(&self, _: &Key) -> Self::Gauge {
        Arc::default()
    }

    fn histogram(&self, key: &Key) -> Self::Histogram {
        let bounds = match catalogue::find(key.name()).map(|metric| metric.kind) {
            Some(MetricKind::Histogram(bounds)) => bounds,
            _ => &[],
        };
        Arc::new(Buckets::new(bounds))
    }
}

/// A histogram's counts.
#[derive(Debug)]
struct Buckets {
    bounds: &'static [f64],
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl Buckets {
    fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        GaugeFn::increment(&self.sum, value);
    }
}

/// The metric of a key, if the catalogue has one with exactly these labels.
fn metric(key: &Key) -> Option<&'static Metric> {
    let metric = catalogue::find(key.name())?;
    let known = |label: &metrics::Label| metric.labels.contains(&label.key());
    (key.labels().len() == metric.labels.len() && key.labels().all(known)).then_some(metric)
}

fn has_kind(key: &Key, wanted: impl Fn(MetricKind) -> bool) -> bool {
    let known = metric(key).is_some_and(|metric| wanted(metric.kind));
    if !known {
        tracing::debug!(name = key.name(), "a metric that is not in the catalogue is not kept");
    }
    known
}

impl Recorder for Series {
    // The catalogue has the descriptions.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if !has_kind(key, |kind| kind == MetricKind::Counter) {
            return Counter::noop();
        }
        self.registry.get_or_create_counter(key, |counter| Counter::from_arc(Arc::clone(counter)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if !has_kind(key, |kind| kind == MetricKind::Gauge) {
            return Gauge::noop();
        }
        self.registry.get_or_create_gauge(key, |gauge| Gauge::from_arc(Arc::clone(gauge)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if !has_kind(key, |kind| matches!(kind, MetricKind::Histogram(_))) {
            return Histogram::noop();
        }
        self.registry.get_or_create_histogram(key, |histogram| Histogram::from_arc(Arc::clone(histogram)))
    }
}

impl Series {
    /// Deletes the series of plugins that no longer exist.
    pub(in crate::admin) fn retain_plugins(&self, is_there: impl Fn(&str) -> bool) {
        let stays = |key: &Key| {
            let plugin = key.labels().find(|label| label.key() == PLUGIN);
            plugin.is_none_or(|label| is_there(label.value()))
        };
        self.registry.retain_counters(|key, _| stays(key));
        self.registry.retain_gauges(|key, _| stays(key));
        self.registry.retain_histograms(|key, _| stays(key));
    }

    /// Adds all series to a page. A plugin's counter or histogram is shown from its first count on: most
    /// reasons and outcomes never occur.
    pub(in crate::admin) fn write_to(&self, page: &mut MetricsPage) {
        self.registry.visit_counters(|key, counter| {
            let count = counter.load(Ordering::Relaxed);
            if count > 0 || !key.labels().any(|label| label.key() == PLUGIN) {
                page.sample(key.name(), &values(key), count);
            }
        });
        self.registry.visit_gauges(|key, gauge| {
            page.sample(key.name(), &values(key), f64::from_bits(gauge.load(Ordering::Relaxed)));
        });
        self.registry.visit_histograms(|key, buckets| {
            let counts = buckets.counts();
            if counts.iter().any(|count| *count > 0) {
                let sum = f64::from_bits(buckets.sum.load(Ordering::Relaxed));
                page.histogram(key.name(), &values(key), buckets.bounds, &counts, sum);
            }
        });
    }
}

/// A key's label values in the catalogue's order.
fn values(key: &Key) -> Vec<&str> {
    let labels = metric(key).map_or(&[][..], |metric| metric.labels);
    let value = |wanted: &&str| key.labels().find(|label| label.key() == *wanted).map(metrics::Label::value);
    labels.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(record: impl FnOnce()) -> Series {
        let series = Series { registry: Registry::new(SeriesStorage) };
        metrics::with_local_recorder(&series, record);
        series
    }

    fn shown(series: &Series) -> Vec<String> {
        let mut page = MetricsPage::new();
        series.write_to(&mut page);
        page.finish().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    // Promises: METRIC-1
    #[test]
    fn what_is_not_in_the_catalogue_is_not_kept() {
        let series = series(|| {
            metrics::counter!("talon_guard_paged_total", "plugin" => "a").increment(2);
            metrics::counter!("talon_guard_paged_total", "plugin" => "idle").increment(0);
            metrics::counter!("talon_made_up_total", "plugin" => "a").increment(1);
            metrics::counter!("talon_guard_paged_total", "plugin" => "a", "text" => "whatever").increment(1);
            metrics::counter!("talon_guard_paged_total").increment(1);
            metrics::gauge!("talon_guard_paged_total", "plugin" => "a").set(1.0);
        });
        assert_eq!(shown(&series), ["talon_guard_paged_total{plugin=\"a\"} 2"]);
    }

    // Promises: METRIC-4
    #[test]
    fn the_series_of_plugins_that_are_gone_go() {
        let series = series(|| {
            for plugin in ["here", "gone"] {
                metrics::counter!("talon_guard_paged_total", "plugin" => plugin).increment(1);
                metrics::gauge!("talon_guard_quarantined", "plugin" => plugin).set(1.0);
                metrics::histogram!("talon_plugin_start_duration_seconds", "plugin" => plugin).record(0.5);
            }
            metrics::counter!("talon_watchdog_pings_total").increment(1);
        });
        series.retain_plugins(|name| name == "here");
        let shown = shown(&series);
        assert!(!shown.iter().any(|line| line.contains("gone")), "{shown:?}");
        assert_eq!(shown.iter().filter(|line| line.contains("here")).count(), 2 + 13 + 2, "{shown:?}");
        assert!(shown.contains(&"talon_watchdog_pings_total 1".to_owned()), "{shown:?}");
    }

    #[test]
    fn a_value_on_a_bound_is_within_it() {
        let buckets = Buckets::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.5] {
            buckets.record(value);
        }
        assert_eq!(buckets.counts(), [2, 1, 1]);
    }
}
