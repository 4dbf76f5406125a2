//! A rejected call, with the text for the model.

use std::fmt::Write as _;

use talon_guard::Raw;
use talon_llm::model::ToolCall;
use talon_sanitize::truncate;

use crate::answer::{Mismatch, quoted};
use crate::tool_result::{CallOutcome, Provenance, ToolResult};

/// How much of a made-up name or text is shown back to the model.
const MAX_SHOWN_BYTES: usize = 80;

/// Why a call is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no tool of this name.
    NotOffered {
        /// The name in the call.
        name: String,
        /// The nearest existing names.
        nearest: Vec<String>,
    },
    /// The arguments are no JSON object.
    Unreadable {
        /// The beginning of the arguments.
        start: String,
        /// The answer reached its token limit, which is the cause.
        cut_off: bool,
    },
    /// The arguments do not fit the tool's schema.
    Arguments {
        /// The mismatches.
        mismatches: Vec<Mismatch>,
        /// Unknown arguments, each with the nearest known ones.
        unknown: Vec<(String, Vec<String>)>,
    },
}

impl Refusal {
    pub(super) fn not_offered(call: &ToolCall, nearest: Vec<String>) -> Self {
        Self::NotOffered { name: shown(&call.name), nearest }
    }

    pub(super) fn unreadable(text: &str, cut_off: bool) -> Self {
        Self::Unreadable { start: shown(text), cut_off }
    }

    pub(super) fn arguments(mismatches: Vec<Mismatch>, unknown: Vec<(String, Vec<String>)>) -> Self {
        Self::Arguments {
            mismatches,
            unknown: unknown.into_iter().map(|(name, near)| (shown(&name), near)).collect(),
        }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = "error: ".to_owned();
        match self {
            Self::NotOffered { name, nearest } => {
                let _ = write!(out, "there is no tool {name:?}");
                if nearest.is_empty() {
                    out.push_str("; call only the tools that are offered");
                } else {
                    let _ = write!(out, "; did you mean {}?", nearest.join(", "));
                }
            }
            Self::Unreadable { cut_off: true, .. } => {
                out.push_str("your answer ran into its limit of tokens in the middle of this call; make it shorter, or in parts");
            }
            Self::Unreadable { start, cut_off: false } => {
                let _ = write!(out, "the arguments are not a JSON object: {start:?}");
            }
            Self::Arguments { mismatches, unknown } => {
                let unknown = unknown.iter().map(|(name, nearest)| match nearest.first() {
                    Some(nearest) => format!("there is no argument {name:?}, did you mean {nearest}?"),
                    None => format!("there is no argument {name:?}"),
                });
                out.push_str("the arguments do not fit:");
                out = quoted(&out, unknown.chain(mismatches.iter().map(Mismatch::to_string)));
            }
        }
        out
    }

    /// The result of the call.
    #[must_use]
    pub fn result(&self) -> ToolResult {
        let ran = if matches!(self, Self::NotOffered { .. }) {
            CallOutcome::NotOffered
        } else {
            CallOutcome::Failed
        };
        // The model may have the quoted text from a plugin.
        let text = Raw::from(self.text()).text().into_string();
        ToolResult { outcome: ran, block: text.clone(), output: text, provenance: Provenance::default() }
    }
}

fn shown(text: &str) -> String {
    truncate(text, MAX_SHOWN_BYTES, "…").into_owned()
}
