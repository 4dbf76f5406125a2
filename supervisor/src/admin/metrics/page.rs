//! The text of a scrape: samples grouped by metric.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use metrics_exporter_prometheus::formatting::{sanitize_label_value, write_help_line, write_type_line};

use super::catalogue::{self, Metric};

/// The `Content-Type` of `/metrics`: the text format that every Prometheus version reads.
pub(in crate::admin) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page under construction.
pub(in crate::admin) struct MetricsPage {
    families: BTreeMap<&'static str, (&'static Metric, String)>,
}

impl MetricsPage {
    /// A page without samples.
    pub(in crate::admin) fn new() -> Self {
        let families = catalogue::ALL.iter().map(|metric| (metric.name, (metric, String::new())));
        Self { families: families.collect() }
    }

    /// Adds a sample; `values` are its label values, in the catalogue's order.
    pub(in crate::admin) fn sample(&mut self, name: &str, values: &[&str], value: impl Display) {
        self.line(name, "", values, None, value);
    }

    /// Adds the samples of a histogram: the count of each bucket; the last one counts values beyond all
    /// bounds.
    pub(in crate::admin) fn histogram(
        &mut self,
        name: &str,
        values: &[&str],
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) {
        let mut total = 0;
        for (place, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(place).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
            self.line(name, "_bucket", values, Some(&bound), total);
        }
        self.line(name, "_sum", values, None, sum);
        self.line(name, "_count", values, None, total);
    }

    fn line(&mut self, name: &str, suffix: &str, values: &[&str], bound: Option<&str>, value: impl Display) {
        let Some((metric, lines)) = self.families.get_mut(name) else {
            debug_assert!(false, "{name} is not in the catalogue");
            return;
        };
        debug_assert_eq!(metric.labels.len(), values.len(), "{name}");
        lines.push_str(metric.name);
        lines.push_str(suffix);
        let labels = metric.labels.iter().copied().zip(values.iter().copied());
        for (place, (label, value)) in labels.chain(bound.map(|bound| ("le", bound))).enumerate() {
            lines.push(if place == 0 { '{' } else { ',' });
            // Writing to a string cannot fail.
            let _ = write!(lines, "{label}=\"{}\"", sanitize_label_value(value));
        }
        if !metric.labels.is_empty() || bound.is_some() {
            lines.push('}');
        }
        let _ = writeln!(lines, " {value}");
    }

    /// The whole text, without metrics that have no samples.
    pub(in crate::admin) fn finish(self) -> String {
        let mut text = String::new();
        for (metric, lines) in self.families.values().filter(|(_, lines)| !lines.is_empty()) {
            write_help_line(&mut text, metric.name, None, None, metric.help);
            write_type_line(&mut text, metric.name, None, None, metric.kind.type_name());
            text.push_str(lines);
        }
        text
    }
}

impl Default for MetricsPage {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_metric_stand_together() {
        let mut page = MetricsPage::new();
        page.sample("talon_calls_shed_total", &["a"], 1);
        page.sample("talon_ready", &[], 1);
        page.sample("talon_calls_shed_total", &["b\"\n\\"], 2);
        assert_eq!(
            page.finish(),
            "# HELP talon_calls_shed_total Calls refused because the plugin's queue was full\n\
             # TYPE talon_calls_shed_total counter\n\
             talon_calls_shed_total{plugin=\"a\"} 1\n\
             talon_calls_shed_total{plugin=\"b\\\"\\n\\\\\"} 2\n\
             # HELP talon_ready 1 while /readyz says so\n\
             # TYPE talon_ready gauge\n\
             talon_ready 1\n"
        );
    }

    #[test]
    fn buckets_add_up() {
        let mut page = MetricsPage::new();
        page.histogram("talon_plugin_start_duration_seconds", &["a"], &[0.5, 1.0], &[2, 0, 3], 7.25);
        let text = page.finish();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "talon_plugin_start_duration_seconds_bucket{plugin=\"a\",le=\"0.5\"} 2",
                "talon_plugin_start_duration_seconds_bucket{plugin=\"a\",le=\"1\"} 2",
                "talon_plugin_start_duration_seconds_bucket{plugin=\"a\",le=\"+Inf\"} 5",
                "talon_plugin_start_duration_seconds_sum{plugin=\"a\"} 7.25",
                "talon_plugin_start_duration_seconds_count{plugin=\"a\"} 5",
            ]
        );
    }
}
