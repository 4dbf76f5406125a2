//! A strict parser of Prometheus' text format, and the names that queries use.

use std::collections::{BTreeMap, BTreeSet};

/// One metric of a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// What it means.
    pub help: String,
    /// The names of its labels, `le` not among them.
    pub labels: BTreeSet<String>,
    /// Its values; of a histogram the counts.
    pub samples: Vec<(BTreeMap<String, String>, f64)>,
}

impl Family {
    /// The sum of the samples whose labels have these values.
    #[must_use]
    pub fn sum(&self, wanted: &[(&str, &str)]) -> f64 {
        let fits = |labels: &BTreeMap<String, String>| {
            wanted.iter().all(|(label, value)| labels.get(*label).is_some_and(|found| found == value))
        };
        // From 0, since the sum of no values would be -0.
        self.samples.iter().filter(|(labels, _)| fits(labels)).fold(0.0, |sum, (_, value)| sum + value)
    }
}

/// Parses a whole page.
///
/// # Panics
/// With the line that violates the format.
#[must_use]
pub fn parse(page: &str) -> BTreeMap<String, Family> {
    assert!(page.ends_with('\n'), "the last line ends");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    let mut current = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let kind = lines.next().and_then(|next| next.strip_prefix("# TYPE ")?.strip_prefix(name));
            let kind = kind.unwrap_or_else(|| panic!("no type follows {line}")).trim().to_owned();
            assert!(["counter", "gauge", "histogram"].contains(&kind.as_str()), "{name}: {kind}");
            name.to_owned().clone_into(&mut current);
            let family = Family { kind, help: help.to_owned(), ..Family::default() };
            assert!(families.insert(current.clone(), family).is_none(), "{name} stands there twice");
            continue;
        }
        assert!(!line.starts_with('#') && !line.is_empty(), "{line}");
        let (name, labels, value) = sample(line);
        let family = families.get_mut(&current).unwrap_or_else(|| panic!("nothing announces {line}"));
        let suffix = name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line} under {current}"));
        assert!(seen.insert((name.clone(), labels.clone())), "twice: {line}");
        let mut own = labels.clone();
        let bound = own.remove("le");
        let series = format!("{current}{own:?}");
        let names: BTreeSet<String> = own.keys().cloned().collect();
        if family.samples.is_empty() && buckets.keys().all(|key| !key.starts_with(&format!("{current}{{"))) {
            family.labels = names;
        } else {
            assert_eq!(family.labels, names, "{line}");
        }
        match (family.kind.as_str(), suffix) {
            ("histogram", "_bucket") => {
                let bound = bound.as_deref().unwrap_or_else(|| panic!("{line}"));
                let bound = if bound == "+Inf" { f64::INFINITY } else { number(bound) };
                buckets.entry(series).or_default().push((bound, value));
            }
            ("histogram", "_sum") => {}
            ("histogram", "_count") => {
                counts.insert(series, value);
                family.samples.push((own, value));
            }
            ("counter" | "gauge", "") => {
                assert!(bound.is_none() && (family.kind == "gauge" || value >= 0.0), "{line}");
                family.samples.push((own, value));
            }
            _ => panic!("{line} is no sample of a {}", family.kind),
        }
    }
    for (series, buckets) in &buckets {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{series}: {buckets:?}");
        let last = buckets.last().expect("a histogram has buckets");
        assert!(last.0.is_infinite() && counts.get(series) == Some(&last.1), "{series}: {buckets:?}");
    }
    families
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after).unwrap_or_else(|| panic!("{line}"));
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            match after.strip_prefix(',') {
                Some(next) => inside = next,
                None => {
                    rest = after.strip_prefix('}').unwrap_or_else(|| panic!("{line}"));
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    (name.to_owned(), labels, number(value))
}

/// A value up to its closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                escaped @ ('"' | '\\') => escaped,
                _ => return None,
            }),
            char => value.push(char),
        }
    }
    None
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn is_name(text: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.chars().all(plain) && text.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

/// What a query uses: our metrics with the labels that it selects by, and the labels that it groups by.
///
/// # Panics
/// When a selector is not closed.
#[must_use]
pub fn referenced_metrics(query: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let (mut metrics, mut groups) = (Vec::new(), Vec::new());
    let mut rest = query;
    while let Some(at) = rest.find("talon_") {
        let end = rest[at..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(rest.len(), |end| at + end);
        let name = rest[at..end].to_owned();
        rest = &rest[end..];
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            let close = inside.find('}').unwrap_or_else(|| panic!("{query}"));
            for matcher in inside[..close].split(',') {
                let label = matcher.trim().split(['=', '!']).next().unwrap_or_default();
                labels.push(label.trim().to_owned());
            }
            rest = &inside[close + 1..];
        }
        metrics.push((name, labels));
    }
    for grouping in query.split("by (").skip(1) {
        let inside = grouping.split(')').next().unwrap_or_default();
        groups.extend(inside.split(',').map(|label| label.trim().to_owned()));
    }
    (metrics, groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_taken_apart() {
        let query =
            r#"topk(3, sum by (le, plugin) (rate(talon_a_bucket{plugin=~"$p", x!="1"}[5m]))) / talon_b"#;
        let (metrics, groups) = referenced_metrics(query);
        let labels = vec!["plugin".to_owned(), "x".to_owned()];
        assert_eq!(metrics, [("talon_a_bucket".to_owned(), labels), ("talon_b".to_owned(), Vec::new())]);
        assert_eq!(groups, ["le", "plugin"]);
    }

    #[test]
    fn a_page_is_read() {
        let page = "# HELP a What\n# TYPE a counter\na{x=\"1\\\"}\"} 2\na{x=\"2\"} 3\n";
        let family = &parse(page)["a"];
        assert_eq!((family.sum(&[]), family.sum(&[("x", "1\"}")])), (5.0, 2.0));
    }
}
