//! Renders the agent's metrics for the page. Input is untrusted: only names with the agent's prefix are
//! accepted, and everything is bounded. A sample that does not fit is dropped as a whole, so that the rest
//! stays valid.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use metrics_exporter_prometheus::formatting::{sanitize_label_value, write_help_line, write_type_line};
use talon_proto::agent::{Bucket, MetricFamily, Sample};
use talon_sanitize::Raw;

use crate::admin::metrics::catalogue;

/// The prefix of all its names.
const PREFIX: &str = "talon_agent_";
/// Suffixes of a histogram's parts.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];
/// Maximum length of the name of a family or label.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of families: it has some dozens.
const MAX_FAMILIES: usize = 64;
/// Maximum number of samples of one family, and of all. The agent stores 500 of a family (a hundred tools
/// with five outcomes) and one for the rest. Most families have a few, so the total allows five full ones.
const MAX_SAMPLES: usize = 501;
const MAX_ALL_SAMPLES: usize = 2500;
/// The metric that counts dropped samples.
const DROPPED: &str = "talon_agent_samples_dropped";
/// Maximum number of labels of one sample.
const MAX_LABELS: usize = 6;
/// Maximum length of a label's value: names of models are shorter.
const MAX_VALUE_BYTES: usize = 128;
/// Maximum length of a description.
const MAX_HELP_BYTES: usize = 256;
/// Maximum number of buckets of one histogram.
const MAX_BUCKETS: usize = 32;

/// Renders the families.
pub(super) fn text(families: Vec<MetricFamily>) -> String {
    let mut text = String::new();
    let mut names = BTreeSet::new();
    let (mut left, mut dropped) = (MAX_ALL_SAMPLES, 0);
    let is_there = !families.is_empty();
    for (index, family) in families.into_iter().enumerate() {
        let kind = match family.kind.as_str() {
            kind @ ("counter" | "gauge" | "histogram") if index < MAX_FAMILIES => kind,
            _ => {
                dropped += family.samples.len();
                continue;
            }
        };
        if !has_agent_prefix(&family.name) || !names.insert(family.name.clone()) {
            dropped += family.samples.len();
            continue;
        }
        let before = left;
        let lines = lines(&family, &mut left);
        dropped += family.samples.len() - (before - left);
        if !lines.is_empty() {
            let help = Raw::from(&family.help).line_within(MAX_HELP_BYTES);
            write_help_line(&mut text, &family.name, None, None, help.as_str());
            write_type_line(&mut text, &family.name, None, None, kind);
            text.push_str(&lines);
        }
    }
    if is_there {
        write_help_line(&mut text, DROPPED, None, None, "Samples of the agent that are not on this page.");
        write_type_line(&mut text, DROPPED, None, None, "gauge");
        line(&mut text, DROPPED, "", "", dropped);
    }
    text
}

fn has_agent_prefix(name: &str) -> bool {
    name.starts_with(PREFIX)
        && is_name(name)
        && !PARTS.iter().any(|part| name.ends_with(part))
        && name != DROPPED
        && catalogue::ALL.iter().all(|metric| metric.name != name)
}

fn is_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    name.len() <= MAX_NAME_BYTES
        && name.bytes().next().is_some_and(letter)
        && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}

/// The samples; of several with equal labels only the first.
fn lines(family: &MetricFamily, left: &mut usize) -> String {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    for sample in family.samples.iter().take(MAX_SAMPLES.min(*left)) {
        let Some(labels) = labels(sample).filter(|_| sample.value.is_finite()) else { continue };
        if !seen.insert(labels.clone()) {
            continue;
        }
        if family.kind == "histogram" {
            if !is_histogram(sample) {
                continue;
            }
            histogram(&mut text, &family.name, &labels, sample);
        } else {
            line(&mut text, &family.name, "", &labels, sample.value);
        }
        *left -= 1;
    }
    text
}

/// `name="value",…`; `None` if the labels are invalid.
fn labels(sample: &Sample) -> Option<String> {
    let fits = |name: &String| is_name(name) && name != "le" && !name.starts_with("__");
    if sample.labels.len() > MAX_LABELS || !sample.labels.keys().all(fits) {
        return None;
    }
    let mut sorted: Vec<_> = sample.labels.iter().collect();
    sorted.sort();
    let pair = |(name, value): (&String, &String)| {
        let value = Raw::from(value).line_within(MAX_VALUE_BYTES);
        format!("{name}=\"{}\"", sanitize_label_value(value.as_str()))
    };
    Some(sorted.into_iter().map(pair).collect::<Vec<_>>().join(","))
}

/// Whether bounds and counts increase, and the last bound is infinity and holds the total count.
fn is_histogram(Sample { buckets, count, .. }: &Sample) -> bool {
    let up = |pair: &[Bucket]| pair[0].bound < pair[1].bound && pair[0].count <= pair[1].count;
    (1..=MAX_BUCKETS).contains(&buckets.len())
        && buckets.windows(2).all(up)
        && buckets.last().is_some_and(|last| last.bound == f64::INFINITY && last.count == *count)
}

fn histogram(text: &mut String, name: &str, labels: &str, sample: &Sample) {
    for Bucket { bound, count } in &sample.buckets {
        let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
        let comma = if labels.is_empty() { "" } else { "," };
        line(text, name, "_bucket", &format!("{labels}{comma}le=\"{bound}\""), count);
    }
    line(text, name, "_sum", labels, sample.value);
    line(text, name, "_count", labels, sample.count);
}

fn line(text: &mut String, name: &str, part: &str, labels: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = match labels {
        "" => writeln!(text, "{name}{part} {value}"),
        labels => writeln!(text, "{name}{part}{{{labels}}} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits the page into the samples and the value of the line about dropped ones.
    fn parted(families: Vec<MetricFamily>) -> (String, usize) {
        let page = super::text(families);
        let (shown, dropped) = page.split_once(&format!("# HELP {DROPPED}")).expect("it is always there");
        let dropped = dropped.trim_end().rsplit(' ').next().expect("a number");
        (shown.to_owned(), dropped.parse().expect("a number"))
    }

    fn text(families: Vec<MetricFamily>) -> String {
        parted(families).0
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let many = |name: &str, count: usize| {
            let samples = (0..count).map(|at| sample(&[("at", &at.to_string())], 1.0)).collect();
            family(name, "gauge", samples)
        };
        let (page, dropped) = parted(vec![many("talon_agent_all", 501)]);
        assert_eq!((page.lines().count(), dropped), (503, 0));
        let (_, dropped) = parted(vec![
            many("talon_agent_too_many", 601),
            many("talon_other", 3),
            many(DROPPED, 2),
            family("talon_agent_x", "gauge", vec![sample(&[], f64::NAN)]),
        ]);
        assert_eq!(dropped, 100 + 3 + 2 + 1);
        assert_eq!(super::text(Vec::new()), "");
    }

    fn sample(labels: &[(&str, &str)], value: f64) -> Sample {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Sample { labels: labels.collect(), value, ..Sample::default() }
    }

    fn family(name: &str, kind: &str, samples: Vec<Sample>) -> MetricFamily {
        MetricFamily {
            name: name.to_owned(),
            kind: kind.to_owned(),
            help: "So many\nof it".to_owned(),
            samples,
        }
    }

    #[test]
    fn what_is_in_order_stands_there() {
        let families = vec![family(
            "talon_agent_turns_total",
            "counter",
            vec![sample(&[("outcome", "a\"b\n"), ("model", "m")], 2.0), sample(&[], 0.5)],
        )];
        assert_eq!(
            text(families),
            "# HELP talon_agent_turns_total So many\\\\nof it\n\
             # TYPE talon_agent_turns_total counter\n\
             talon_agent_turns_total{model=\"m\",outcome=\"a\\\"b\\\\n\"} 2\n\
             talon_agent_turns_total 0.5\n"
        );
    }

    #[test]
    fn what_is_not_its_own_or_no_metric_is_left_out() {
        let one = || vec![sample(&[], 1.0)];
        for name in [
            "talon_ready",
            "talon_agent_up",
            "talon_agent_bad name",
            "talon_agent_{",
            "talon_agent_x_bucket",
            "talon_agent_X",
            &format!("talon_agent_{}", "x".repeat(64)),
        ] {
            assert_eq!(text(vec![family(name, "gauge", one())]), "", "{name}");
        }
        assert_eq!(text(vec![family("talon_agent_x", "summary", one())]), "");
        let twice = vec![family("talon_agent_x", "gauge", one()), family("talon_agent_x", "counter", one())];
        assert_eq!(text(twice).matches("# TYPE").count(), 1);
    }

    #[test]
    fn samples_that_are_none_are_left_out() {
        for bad in [
            sample(&[("le", "1")], 1.0),
            sample(&[("a b", "1")], 1.0),
            sample(&[("", "1")], 1.0),
            sample(&[], f64::NAN),
            sample(&[], f64::INFINITY),
        ] {
            assert_eq!(text(vec![family("talon_agent_x", "gauge", vec![bad])]), "");
        }
        let same = vec![sample(&[("a", "1")], 1.0), sample(&[("a", "1")], 2.0)];
        assert_eq!(text(vec![family("talon_agent_x", "gauge", same)]).lines().count(), 3);
    }

    #[test]
    fn a_histogram_goes_up_to_infinity() {
        let with = |buckets: &[(f64, u64)], count| Sample {
            buckets: buckets.iter().map(|&(bound, count)| Bucket { bound, count }).collect(),
            count,
            ..sample(&[("tool", "t")], 4.5)
        };
        let shown = |sample| text(vec![family("talon_agent_s", "histogram", vec![sample])]);
        let good = shown(with(&[(0.5, 1), (f64::INFINITY, 3)], 3));
        let lines: Vec<_> = good.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "talon_agent_s_bucket{tool=\"t\",le=\"0.5\"} 1",
                "talon_agent_s_bucket{tool=\"t\",le=\"+Inf\"} 3",
                "talon_agent_s_sum{tool=\"t\"} 4.5",
                "talon_agent_s_count{tool=\"t\"} 3",
            ]
        );
        for (buckets, count) in [
            (vec![], 0),
            (vec![(0.5, 1)], 1),
            (vec![(1.0, 2), (0.5, 2), (f64::INFINITY, 2)], 2),
            (vec![(0.5, 2), (f64::INFINITY, 1)], 1),
            (vec![(0.5, 1), (f64::INFINITY, 3)], 4),
        ] {
            assert_eq!(shown(with(&buckets, count)), "", "{buckets:?}");
        }
    }

    #[test]
    fn whatever_it_says_the_page_stays_short() {
        let labels = [("a", "ä".repeat(10_000))];
        let of = |number: usize| {
            let sample = |place: usize| {
                let mut sample = sample(&[("place", &place.to_string())], 1.0);
                sample.labels.extend(labels.clone().map(|(name, value)| (name.to_owned(), value)));
                sample
            };
            family(&format!("talon_agent_{number}"), "gauge", (0..500).map(sample).collect())
        };
        let text = text((0..200).map(of).collect());
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), MAX_ALL_SAMPLES);
        assert!(text.len() < 512 << 10, "{}", text.len());
    }
}
