//! The figures of a run: every measurement of every round.

use serde::{Deserialize, Serialize};

use crate::samples::Samples;

/// Identifies a figure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The suite and the case: `calls/1 KiB/c64`.
    pub case: String,
    /// The contender: `in process`.
    pub contender: String,
    /// The metric: `p50`.
    pub metric: String,
}

/// The unit of a metric, and which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Microseconds; fewer are better.
    #[serde(rename = "µs")]
    Microseconds,
    /// Milliseconds; fewer are better.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Things done in a second; more are better.
    #[serde(rename = "/s")]
    PerSecond,
    /// Gigabytes (10^9) in a second; more are better.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// Mebibytes; fewer are better.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// Hundredths of one core's time; fewer are better.
    #[serde(rename = "% of a core")]
    PercentOfACore,
    /// A number; fewer are better.
    #[serde(rename = "")]
    Count,
}

/// What follows a number: its unit, or the sign of a ratio.
#[must_use]
pub fn suffix(unit: &str) -> String {
    if unit.is_empty() { "×".to_owned() } else { format!(" {unit}") }
}

impl Unit {
    /// How it is written after a number.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::PerSecond => "/s",
            Self::GigabytesPerSecond => "GB/s",
            Self::Mebibytes => "MiB",
            Self::PercentOfACore => "% of a core",
            Self::Count => "",
        }
    }

    /// A difference below this is noise in any figure: the clock's resolution, one page of memory, or the
    /// error of a difference between two times that are nearly equal.
    #[must_use]
    pub fn min_difference(self) -> f64 {
        match self {
            Self::Microseconds => 0.05,
            Self::Milliseconds => 0.01,
            Self::PerSecond => 1.0,
            Self::GigabytesPerSecond => 0.001,
            Self::Mebibytes => 0.1,
            Self::PercentOfACore => 0.1,
            Self::Count => 0.5,
        }
    }

    /// Whether a larger number is the better one.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::GigabytesPerSecond)
    }
}

/// One figure, with its value in each round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    #[serde(flatten)]
    pub key: Key,
    /// Its unit.
    pub unit: Unit,
    /// The contender that the others of the case are compared with: the one without guard, jail or
    /// supervisor.
    pub yardstick: Option<String>,
    /// The rounds.
    pub samples: Samples,
}

/// All figures, in the order in which they were first measured.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    figures: Vec<Figure>,
    notes: Vec<String>,
    condition: &'static str,
    suite: String,
}

/// Records the figures of one case of a suite.
pub struct CaseRecorder<'b> {
    book: &'b mut Figures,
    case: String,
    yardstick: Option<&'static str>,
}

impl Figures {
    /// A case, and the contender that its others are compared with.
    pub fn case(&mut self, case: impl Into<String>, yardstick: Option<&'static str>) -> CaseRecorder<'_> {
        let case = case.into() + self.condition;
        CaseRecorder { book: self, case, yardstick }
    }

    /// From now on this is appended to the name of every case: the condition under which it is measured.
    /// Empty: none.
    pub fn set_condition(&mut self, condition: &'static str) {
        self.condition = condition;
    }

    /// From now on notes are of this suite.
    pub fn set_suite(&mut self, suite: &str) {
        suite.clone_into(&mut self.suite);
    }

    /// Adds a note about the run, one line: what of the suite was left out, and why. The same one again is one note.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = format!("`{}`: {}", self.suite, note.into().replace('\n', " "));
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The samples of a figure, if it was measured.
    #[must_use]
    pub fn samples(&self, case: &str, contender: &str, metric: &str) -> Option<&Samples> {
        let of = |figure: &&Figure| {
            figure.key.case == case && figure.key.contender == contender && figure.key.metric == metric
        };
        self.figures.iter().find(of).map(|figure| &figure.samples)
    }

    /// All figures and notes.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Figure>, Vec<String>) {
        (self.figures, self.notes)
    }
}

impl CaseRecorder<'_> {
    /// Adds one round of one contender.
    pub fn add(&mut self, contender: &str, metric: &str, unit: Unit, value: f64) {
        let key = Key { case: self.case.clone(), contender: contender.to_owned(), metric: metric.to_owned() };
        let figures = &mut self.book.figures;
        match figures.iter_mut().find(|figure| figure.key == key) {
            Some(figure) => figure.samples.0.push(value),
            None => figures.push(Figure {
                key,
                unit,
                yardstick: self.yardstick.map(str::to_owned),
                samples: Samples(vec![value]),
            }),
        }
    }
}
