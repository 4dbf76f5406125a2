//! What the journal keeps of hooks, beside the message or the answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talon_extensions::Role;

/// The verdict of one hook, without the texts: these stand once, beside the records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Its role.
    pub role: Role,
    /// Its entry's name.
    pub name: String,
    /// What it said.
    pub verdict: RecordedVerdict,
    /// The keys of metadata that it set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// A verdict, or that there was none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedVerdict {
    /// The message stayed.
    Pass,
    /// The message stayed, and something was noted.
    Annotate,
    /// Another message took its place.
    Replace,
    /// It was dropped.
    Drop,
    /// It failed.
    Failed(String),
}

/// Why nothing goes on after a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageEnd {
    /// A hook dropped the message.
    Dropped {
        /// The hook.
        by: String,
        /// Why; may be empty.
        reason: String,
    },
    /// A hook failed whose policy is closed.
    Failed {
        /// The hook.
        by: String,
        /// How.
        error: String,
    },
}

/// A message that went through filters and request hooks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HookedRequest {
    /// The person's message, if another one took its place, or none goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// What hooks noted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The verdicts, in order.
    #[serde(default)]
    pub records: Vec<HookRecord>,
    /// Why no message goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<StageEnd>,
}

/// An answer that went through response hooks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookedAnswer {
    /// What the person gets; empty if nothing.
    pub text: String,
    /// The rest.
    pub verdicts: AnswerVerdicts,
}

/// What response hooks said of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerVerdicts {
    /// Whether the text is another one than the model's.
    #[serde(default)]
    pub replaced: bool,
    /// What hooks noted in the turn so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The verdicts, in order.
    #[serde(default)]
    pub records: Vec<HookRecord>,
    /// Why the person gets no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<StageEnd>,
}
