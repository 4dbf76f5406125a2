//! What is kept of a run, as JSON.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::book::{Book, Figure};
use crate::goals::GOALS;
use crate::machine::Origin;
use crate::samples::Spread;

/// The shape that this program writes and reads.
const SCHEMA: u32 = 2;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The shape of all this.
    pub schema: u32,
    /// Of which tree, where and when.
    pub origin: Origin,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// The table of goals, in its order. What was not measured is missing.
    pub goals: Vec<Reached>,
    /// Every figure, by round.
    pub figures: Vec<Figure>,
}

/// What a goal came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Its word.
    pub id: String,
    /// What it says.
    pub what: String,
    /// `≥ 1.20×`.
    pub goal: String,
    /// The unit of a figure; empty for a ratio.
    pub unit: String,
    /// What it came to.
    #[serde(flatten)]
    pub spread: Spread,
    /// Whether the median keeps the bound, if there is one.
    pub met: Option<bool>,
}

impl Document {
    /// Of what was measured.
    #[must_use]
    pub fn new(book: Book, origin: Origin) -> Self {
        let reached = |goal: &crate::goals::Goal| {
            let spread = goal.formula.of(&book)?.spread()?;
            Some(Reached {
                id: goal.id.to_owned(),
                what: goal.what.to_owned(),
                goal: goal.wanted(),
                unit: goal.unit.to_owned(),
                spread,
                met: goal.bound.holds(spread.median),
            })
        };
        let goals = GOALS.iter().filter_map(reached).collect();
        let (figures, notes) = book.into_parts();
        Self { schema: SCHEMA, origin, notes, goals, figures }
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is none, or of another shape.
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
    /// Never: a document has nothing that JSON has not.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("maps with text keys, numbers and texts");
        text.push('\n');
        text
    }
}

/// What stands behind a number: its unit, or the sign of a ratio.
#[must_use]
pub fn suffix(unit: &str) -> String {
    if unit.is_empty() { "×".to_owned() } else { format!(" {unit}") }
}
