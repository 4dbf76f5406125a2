//! What the drivers report to the judge.

use serde::{Deserialize, Serialize};

use crate::expected::Verdict;

/// The result of one attack in one column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) column: String,
    pub(crate) attack: String,
    pub(crate) verdict: Verdict,
    /// What refused it: an errno's name, or a signal.
    pub(crate) by: String,
    pub(crate) detail: String,
    /// What is wrong regardless of the verdict: leftovers, a neighbour that did not answer.
    pub(crate) trouble: Vec<String>,
    /// How often the neighbour answered meanwhile, and its longest response time.
    pub(crate) answers: u32,
    pub(crate) slowest_ms: u64,
}

/// One line for the judge.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line {
    Record(Record),
    /// A column that is not available here, and why.
    Skipped {
        column: String,
        reason: String,
    },
    /// The jail's own report, protection by protection.
    Report {
        column: String,
        lines: Vec<(String, String)>,
    },
}
