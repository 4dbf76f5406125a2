//! Finds what got worse from one run to another.
//!
//! Two runs are two machines, or one machine in two states. A figure with a yardstick is compared as its
//! ratio to that, round by round. Only the others are compared directly, which is meaningful only on the same
//! quiet machine.

use std::fmt::Write as _;

use crate::document::Document;
use crate::figures::{Figure, Key};
use crate::samples::Spread;
use crate::table::{number, ratios, write_table};

/// A change below this part of the old value is noise, however quiet the machine was.
pub const MIN_RELATIVE_CHANGE: f64 = 0.05;

/// One figure of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What was measured.
    pub key: Key,
    /// The contender of the ratio; `None`: the figure itself.
    pub against: Option<String>,
    /// The old value.
    pub before: Spread,
    /// The new value.
    pub after: Spread,
    /// By what part of the old value it got worse; negative if it got better, infinite if the old value was
    /// zero.
    pub worse_by: f64,
    /// Whether that is more than the spreads of both together explain, more than [`MIN_RELATIVE_CHANGE`], and
    /// for a figure itself more than its unit's [minimum](crate::figures::Unit::min_difference).
    pub told: bool,
}

/// The figures that were measured before and are missing now, since a missing figure could hide a regression.
/// Empty if none is missing.
#[must_use]
pub fn missing<'d>(before: &'d Document, after: &Document) -> Vec<&'d Key> {
    let old = before.figures.iter().map(|figure| &figure.key);
    old.filter(|key| !after.figures.iter().any(|figure| figure.key == **key)).collect()
}

/// Compares two runs, figure by figure, the worst change first.
#[must_use]
pub fn compare(before: &Document, after: &Document) -> Vec<Change> {
    let held = |document: &Document, figure: &Figure| {
        let all: Vec<&Figure> = document.figures.iter().collect();
        let ratios = ratios(figure, &all);
        let against = ratios.is_some().then(|| figure.yardstick.clone()).flatten();
        ratios.unwrap_or_else(|| figure.samples.clone()).spread().map(|spread| (spread, against))
    };
    let change = |figure: &Figure| {
        // The yardsticks themselves are not Talon's, so they cannot regress.
        if figure.yardstick.as_deref() == Some(figure.key.contender.as_str()) {
            return None;
        }
        let old = before.figures.iter().find(|old| old.key == figure.key && old.unit == figure.unit)?;
        let ((mut was, was_against), (mut is, mut against)) = (held(before, old)?, held(after, figure)?);
        if was_against != against {
            // The yardstick is zero in one of the runs.
            (was, is, against) = (old.samples.spread()?, figure.samples.spread()?, None);
        }
        let grown = is.median - was.median;
        let worse = if figure.unit.more_is_better() { -grown } else { grown };
        let news = against.is_some() || worse >= figure.unit.min_difference();
        // There is no part of zero: a difference within the noise is no change, any other is infinite.
        let nothing = was.median == 0.0 && (!news || worse == 0.0);
        let worse_by = if nothing { 0.0 } else { worse / was.median.abs() };
        let told = news && worse_by > MIN_RELATIVE_CHANGE.max(was.relative_width() + is.relative_width());
        Some(Change { key: figure.key.clone(), against, before: was, after: is, worse_by, told })
    };
    let mut changes: Vec<Change> = after.figures.iter().filter_map(change).collect();
    changes.sort_by(|one, other| other.worse_by.total_cmp(&one.worse_by));
    changes
}

/// A summary for people: what got worse, and how much was compared.
#[must_use]
pub fn show(changes: &[Change], before: &Document, after: &Document) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} ({}) against {} ({})",
        after.origin.commit, after.origin.date, before.origin.commit, before.origin.date
    );
    if before.origin.machine != after.origin.machine {
        let _ = writeln!(out, "On two machines: what has no yardstick tells nothing.");
    }
    for Document { origin, .. } in [before, after] {
        if let Some(suites) = origin.noisy() {
            let _ = writeln!(out, "The machine was too noisy for {} during {suites}.", origin.commit);
        }
    }
    let gone = missing(before, after);
    if !gone.is_empty() {
        let _ = writeln!(out, "No longer measured ({}):", gone.len());
        for Key { case, contender, metric } in gone {
            let _ = writeln!(out, "- {case}: {contender}, {metric}");
        }
    }
    let worse: Vec<&Change> = changes.iter().filter(|change| change.told).collect();
    if worse.is_empty() {
        let _ = writeln!(out, "Of {} figures none got worse by more than its spread.", changes.len());
        return out;
    }
    let _ =
        writeln!(out, "Of {} figures {} got worse by more than their spread:\n", changes.len(), worse.len());
    let rows = worse.iter().map(|change| {
        let Key { case, contender, metric } = &change.key;
        let unit = if change.against.is_some() { "×" } else { "" };
        [
            format!("{case}: {contender}, {metric}"),
            change.against.clone().map_or_else(|| "itself".to_owned(), |against| format!("over {against}")),
            format!("{}{unit}", number(change.before.median)),
            format!("{}{unit}", number(change.after.median)),
            if change.worse_by.is_finite() {
                format!("{:.0} %", change.worse_by * 100.0)
            } else {
                "from nothing".to_owned()
            },
        ]
    });
    write_table(&mut out, &["what", "measured", "before", "after", "worse by"], rows);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::figures::{Figures, Unit};
    use crate::machine::RunOrigin;

    fn run(ours: [f64; 3], bare: [f64; 3], rate: [f64; 3]) -> Document {
        let mut book = Figures::default();
        for round in 0..3 {
            let mut page = book.case("calls/1 KiB/c1", Some("bare tonic"));
            page.add("in process", "p50", Unit::Microseconds, ours[round]);
            page.add("bare tonic", "p50", Unit::Microseconds, bare[round]);
            book.case("state/get", None).add("Talon", "rate", Unit::PerSecond, rate[round]);
        }
        let origin = RunOrigin {
            commit: "c".into(),
            date: "2026-01-01".into(),
            machine: "m".into(),
            quick: true,
            seconds: 1,
            noise: BTreeMap::new(),
            neighbour_cores: BTreeMap::new(),
        };
        Document::new(book, origin)
    }

    // Promises: SPEED-4
    #[test]
    fn a_slower_machine_is_no_regression() {
        let before = run([10.0, 11.0, 10.0], [10.0, 11.0, 10.0], [100.0, 100.0, 100.0]);
        let after = run([20.0, 24.0, 20.0], [20.0, 24.0, 20.0], [100.0, 100.0, 100.0]);
        assert!(compare(&before, &after).iter().all(|change| !change.told));
        assert!(show(&compare(&before, &after), &before, &after).contains("none got worse"));
    }

    // Promises: SPEED-4
    #[test]
    fn more_than_the_spread_is_told() {
        let before = run([10.0, 10.0, 10.0], [10.0, 10.0, 10.0], [100.0, 100.0, 100.0]);
        let after = run([13.0, 13.0, 13.0], [10.0, 10.0, 10.0], [80.0, 80.0, 80.0]);
        let changes = compare(&before, &after);
        let told: Vec<&str> =
            changes.iter().filter(|change| change.told).map(|change| change.key.contender.as_str()).collect();
        assert_eq!(told, ["in process", "Talon"]);
        assert!(show(&changes, &before, &after).contains("over bare tonic"));
    }

    /// A run of one figure, whose yardstick has this value.
    fn idle(unit: Unit, ours: f64, bare: f64) -> Document {
        let mut book = Figures::default();
        let mut page = book.case("many/500", Some("bare spawner"));
        page.add("Talon", "idle CPU", unit, ours);
        page.add("bare spawner", "idle CPU", unit, bare);
        Document::new(book, run([1.0; 3], [1.0; 3], [1.0; 3]).origin)
    }

    // Promises: SPEED-4
    #[test]
    fn what_was_nothing_is_told_once_it_is_something() {
        let told = |before: f64, after: f64, bare: f64| {
            let [before, after] =
                [(before, 0.0), (after, bare)].map(|(ours, bare)| idle(Unit::PercentOfACore, ours, bare));
            let changes = compare(&before, &after);
            (changes.iter().any(|change| change.told), show(&changes, &before, &after))
        };
        assert!(!told(0.0, 0.0, 0.0).0);
        assert!(!told(0.0, 0.01, 0.0).0, "less than anybody would call something");
        for bare in [0.0, 0.5] {
            let (told, shown) = told(0.0, 0.8, bare);
            assert!(told && shown.contains("from nothing"), "{shown}");
        }
    }

    // Promises: SPEED-4
    #[test]
    fn what_is_not_measured_any_more_is_named() {
        let before = run([10.0; 3], [10.0; 3], [100.0; 3]);
        let mut after = before.clone();
        after.figures.retain(|figure| figure.key.contender != "bare tonic");
        let shown = show(&compare(&before, &after), &before, &after);
        assert!(shown.contains("No longer measured (1)") && shown.contains("bare tonic, p50"), "{shown}");
        assert!(missing(&after, &before).is_empty());
    }

    #[test]
    fn within_the_spread_nothing_is() {
        let before = run([10.0, 14.0, 8.0], [10.0, 10.0, 10.0], [100.0, 100.0, 100.0]);
        let after = run([12.0, 16.0, 9.0], [10.0, 10.0, 10.0], [96.0, 96.0, 96.0]);
        assert!(compare(&before, &after).iter().all(|change| !change.told), "{:?}", compare(&before, &after));
    }
}
