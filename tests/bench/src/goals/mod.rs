//! The performance goals, and the ratios that are shown for comparison.

mod list;

use crate::figures::{Figures, suffix};
use crate::samples::Samples;

pub use list::GOALS;

/// A figure: its case, its contender, its metric.
#[derive(Debug, Clone, Copy)]
pub struct FigureRef(pub &'static str, pub &'static str, pub &'static str);

/// The value that a goal is about.
#[derive(Debug, Clone, Copy)]
pub enum Formula {
    /// The first divided by the second.
    Ratio(FigureRef, FigureRef),
    /// The overhead of the first over the third, divided by the overhead of the second over the third.
    OverheadRatio(FigureRef, FigureRef, FigureRef),
    /// The figure itself.
    Value(FigureRef),
}

/// A bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Not less than this.
    AtLeast(f64),
    /// Not more than this.
    AtMost(f64),
    /// No bound: the row is there to put the previous row into perspective.
    Unbounded,
}

/// One row of the table of goals.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// A stable id for programs.
    pub id: &'static str,
    /// A description for people.
    pub what: &'static str,
    /// The value that the bound is about.
    pub formula: Formula,
    /// The bound.
    pub bound: Bound,
    /// The unit of a figure that has the bound itself; empty for a ratio, which is written with ×.
    pub unit: &'static str,
}

impl Bound {
    /// Whether a value meets the bound, if there is one.
    #[must_use]
    pub fn holds(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(bound) => Some(value >= bound),
            Self::AtMost(bound) => Some(value <= bound),
            Self::Unbounded => None,
        }
    }
}

impl Goal {
    /// Whether its value is a ratio, and so comparable between a quiet and a busy machine.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        self.unit.is_empty()
    }

    /// The bound, for people: `≥ 1.20×`; empty if there is none.
    #[must_use]
    pub fn target(&self) -> String {
        let (sign, bound) = match self.bound {
            Bound::AtLeast(bound) => ("≥", bound),
            Bound::AtMost(bound) => ("≤", bound),
            Bound::Unbounded => return String::new(),
        };
        format!("{sign} {bound:.2}{}", suffix(self.unit))
    }
}

/// How many times worse than its quiet value a goal's ratio may be beside busy neighbours. That leaves room
/// for the noise of a loaded machine, and is far from what waiting costs that relies on idle cores: 3.3 for
/// one caller over `host.sock`.
pub const MAX_TIMES_WORSE: f64 = 1.3;

impl Bound {
    /// How many times worse `busy` is than `quiet`: 1 is the same, less is better. `None` if there is no
    /// bound, which says what is worse, or if one of them is no positive number.
    #[must_use]
    pub fn times_worse(self, quiet: f64, busy: f64) -> Option<f64> {
        let worse = match self {
            Self::AtLeast(_) => quiet / busy,
            Self::AtMost(_) => busy / quiet,
            Self::Unbounded => return None,
        };
        Some(worse).filter(|worse| worse.is_finite() && *worse > 0.0)
    }
}

/// The suites that ratios of goals need, in the order of the goals.
#[must_use]
pub fn suites_of_ratios() -> Vec<&'static str> {
    let mut suites: Vec<&str> = Vec::new();
    for goal in GOALS.iter().filter(|goal| goal.is_ratio()) {
        let (Formula::Ratio(FigureRef(case, ..), _)
        | Formula::OverheadRatio(FigureRef(case, ..), ..)
        | Formula::Value(FigureRef(case, ..))) = goal.formula;
        let suite = case.split_once('/').map_or(case, |(suite, _)| suite);
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    suites
}

impl Formula {
    /// The value in each round, if all its figures were measured. `condition` is what their cases' names end
    /// with: empty, or what [`Figures::set_condition`] was given.
    #[must_use]
    pub fn evaluate(self, book: &Figures, condition: &str) -> Option<Samples> {
        let samples = |FigureRef(case, contender, metric)| {
            book.samples(&format!("{case}{condition}"), contender, metric)
        };
        let found = match self {
            Self::Ratio(this, that) => samples(this)?.divided_by(samples(that)?),
            Self::OverheadRatio(this, that, both) => {
                let both = samples(both)?;
                samples(this)?.minus(both).divided_by(&samples(that)?.minus(both))
            }
            Self::Value(this) => samples(this)?.clone(),
        };
        // A ratio to zero is no figure, and JSON cannot express it.
        Some(found).filter(|found| !found.0.is_empty() && found.0.iter().all(|value| value.is_finite()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Unit;

    #[test]
    fn each_goal_has_a_word_of_its_own() {
        let ids: std::collections::BTreeSet<&str> = GOALS.iter().map(|goal| goal.id).collect();
        assert_eq!(ids.len(), GOALS.len());
    }

    // Promises: GW-149, GW-150, GW-151, UI-40, SPEED-11
    #[test]
    fn goals_of_gateway_pages_and_watcher_are_those_that_are_stated() {
        for (id, bound, unit) in [
            ("gateway-rate", Bound::AtLeast(10.0), ""),
            ("gateway-streams", Bound::AtLeast(10.0), ""),
            ("gateway-added", Bound::AtMost(2.0), "ms"),
            ("gateway-memory", Bound::AtMost(38.1), "MiB"),
            ("gateway-ready", Bound::AtMost(100.0), "ms"),
            ("pages-control-paint", Bound::AtMost(300.0), "ms"),
            ("pages-chat-paint", Bound::AtMost(300.0), "ms"),
            ("pages-typing", Bound::AtMost(100.0), "ms"),
            ("watch-memory", Bound::AtMost(28.6), "MiB"),
            ("watch-idle", Bound::AtMost(1.0), "% of a core"),
        ] {
            let goal = GOALS.iter().find(|goal| goal.id == id).expect("it is in the table");
            assert_eq!((goal.bound, goal.unit), (bound, unit), "{id}");
        }
    }

    #[test]
    fn worse_follows_the_bound() {
        assert_eq!(Bound::AtLeast(1.0).times_worse(2.0, 1.0), Some(2.0));
        assert_eq!(Bound::AtMost(1.0).times_worse(2.0, 1.0), Some(0.5));
        assert_eq!(Bound::Unbounded.times_worse(2.0, 1.0), None);
        assert_eq!(Bound::AtLeast(1.0).times_worse(2.0, 0.0), None, "an infinite number is none in JSON");
    }

    #[test]
    fn ratios_name_the_suites_that_are_run_beside_neighbours() {
        assert_eq!(
            suites_of_ratios(),
            ["calls", "sanitizer", "start", "restart", "many", "floods", "lua", "gateway"]
        );
        assert!(suites_of_ratios().iter().all(|suite| crate::suites::SUITES.contains(suite)));
    }

    #[test]
    fn what_was_not_measured_has_no_value() {
        let mut book = Figures::default();
        assert!(GOALS.iter().all(|goal| goal.formula.evaluate(&book, "").is_none()));
        let mut page = book.case("start/one", Some("no jail"));
        for (contender, ready) in [("no jail", 2.0), ("bwrap", 8.0), ("strict jail", 5.0)] {
            page.add(contender, "ready", Unit::Milliseconds, ready);
        }
        let jail = GOALS.iter().find(|goal| goal.id == "jail").expect("it is there");
        assert_eq!(jail.formula.evaluate(&book, "").expect("measured").0, [0.5]);
        assert_eq!([0.5, 1.1].map(|value| jail.bound.holds(value)), [Some(true), Some(false)]);
    }
}
