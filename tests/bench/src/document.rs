//! The result of a run, as JSON.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::figures::{Figure, Figures};
use crate::goals::{GOALS, Goal, MAX_TIMES_WORSE};
use crate::machine::RunOrigin;
use crate::neighbours::CONDITION;
use crate::samples::Spread;

/// The version of the schema that this program writes and reads.
const SCHEMA: u32 = 2;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The version of this schema.
    pub schema: u32,
    /// The commit, the machine and the time.
    pub origin: RunOrigin,
    /// What was left out, and why: each begins with its suite, as in `` `pages`: ``.
    pub notes: Vec<String>,
    /// The table of goals, in its order. What was not measured is missing.
    pub goals: Vec<GoalResult>,
    /// Every figure, by round.
    pub figures: Vec<Figure>,
}

/// The result for one goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// Its id.
    pub id: String,
    /// Its description.
    pub what: String,
    /// `≥ 1.20×`.
    pub goal: String,
    /// The unit of a figure; empty for a ratio.
    pub unit: String,
    /// The measured value.
    #[serde(flatten)]
    pub spread: Spread,
    /// Whether the median meets the bound, if there is one.
    pub met: Option<bool>,
    /// The same ratio beside busy neighbours, if the run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<LoadedResult>,
}

/// A goal's ratio beside busy neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadedResult {
    /// The measured value.
    #[serde(flatten)]
    pub spread: Spread,
    /// How many times worse its median is than that of the quiet value; 1 is the same.
    pub times_worse: Option<f64>,
    /// Whether that is at most [`MAX_TIMES_WORSE`].
    pub met: Option<bool>,
}

impl Document {
    /// A document of these figures.
    #[must_use]
    pub fn new(book: Figures, origin: RunOrigin) -> Self {
        let loaded = |goal: &Goal, quiet: Spread| {
            let spread = goal.formula.evaluate(&book, CONDITION)?.spread()?;
            let times_worse = goal.bound.times_worse(quiet.median, spread.median);
            let met = times_worse.map(|worse| worse <= MAX_TIMES_WORSE);
            Some(LoadedResult { spread, times_worse, met })
        };
        let reached = |goal: &Goal| {
            let spread = goal.formula.evaluate(&book, "")?.spread()?;
            Some(GoalResult {
                id: goal.id.to_owned(),
                what: goal.what.to_owned(),
                goal: goal.target(),
                unit: goal.unit.to_owned(),
                spread,
                met: goal.bound.holds(spread.median),
                loaded: Some(goal).filter(|goal| goal.is_ratio()).and_then(|goal| loaded(goal, spread)),
            })
        };
        let goals = GOALS.iter().filter_map(reached).collect();
        let (figures, notes) = book.into_parts();
        Self { schema: SCHEMA, origin, notes, goals, figures }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// If the file is not a document, or has another schema version.
    pub fn read(path: &std::path::Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let document: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} was not written by talon-bench", path.display()))?;
        ensure!(
            document.schema == SCHEMA,
            "{} has the shape {}, and this program reads {SCHEMA}: measure both commits with the same program",
            path.display(),
            document.schema
        );
        Ok(document)
    }

    /// As text.
    ///
    /// # Panics
    /// Never: a document holds only values that JSON can express.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("maps with text keys, numbers and texts");
        text.push('\n');
        text
    }
}
