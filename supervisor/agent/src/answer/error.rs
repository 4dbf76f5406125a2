//! Why a final answer is rejected, for the model and for people.

use talon_guard::Raw;
use talon_llm::model::NOTE_BEGINS;

use super::Mismatch;
use crate::fence;

/// How much of a tool's name is repeated: a model may make up a long one.
const MAX_NAME_BYTES: usize = 80;

/// Why a final answer is rejected. Its text is a sentence for people, who see it when no retry is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The answer is empty.
    #[error("The model gave an empty answer. Ask again, or choose another model.")]
    Empty,
    /// The provider withheld it.
    #[error("The provider withheld the model's answer. Put it differently, or choose another model.")]
    Withheld,
    /// The model refused to answer.
    #[error("The model refused to answer. Put it differently, or choose another model.")]
    Refused,
    /// The model reached its token limit in the middle of a call.
    #[error(
        "The model ran into its limit of tokens in the middle of a call of {tool}, which was not made. Ask for less at once, or \
         allow it more tokens: max_output_tokens in models.catalog."
    )]
    CallCutOff {
        /// The tool, as the model named it.
        tool: String,
    },
    /// The model reached its token limit, and again each time that it was to continue.
    #[error(
        "The model's answer is longer than it may be, and its end is missing. Ask for less at once, or allow more: \
         agent.turn.continuations, max_output_tokens in models.catalog."
    )]
    TooLong,
    /// The model reached its token limit.
    #[error(
        "The model ran into its limit of tokens before its answer was whole. Ask for a shorter one, or allow it more tokens."
    )]
    CutOff,
    /// A schema is set, and the answer contains no JSON.
    #[error(
        "The model's answer holds no JSON, which the schema asks for. Choose a model that keeps to schemas, or a simpler schema."
    )]
    NoJson,
    /// It contains JSON, which does not fit.
    #[error("The model's answer does not fit the schema: {}. Choose a model that keeps to schemas, or a simpler schema.", join(.0))]
    Mismatch(Vec<Mismatch>),
}

impl AnswerError {
    /// The error code, for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Empty => "empty_answer",
            Self::Withheld => "answer_withheld",
            Self::Refused => "answer_refused",
            Self::CutOff | Self::CallCutOff { .. } | Self::TooLong => "answer_cut_off",
            Self::NoJson | Self::Mismatch(_) => "answer_invalid",
        }
    }

    /// How often such an answer goes back to the model, where one that does not fit its schema goes back
    /// `structured` times.
    #[must_use]
    pub fn retries(&self, structured: u32) -> u32 {
        match self {
            // What a model withholds or has not got once, it seldom has the third time.
            Self::Empty | Self::Withheld | Self::Refused => structured.min(1),
            // It was continued already.
            Self::TooLong => 0,
            Self::CutOff | Self::CallCutOff { .. } | Self::NoJson | Self::Mismatch(_) => structured,
        }
    }

    /// How the model's answer ended, as results say it.
    #[must_use]
    pub fn finish(&self) -> &'static str {
        match self {
            Self::Withheld => "filter",
            Self::Refused => "refusal",
            Self::CutOff | Self::CallCutOff { .. } | Self::TooLong => "length",
            Self::Empty | Self::NoJson | Self::Mismatch(_) => "stop",
        }
    }

    /// The feedback to the model, with the number of this attempt and of all.
    #[must_use]
    pub fn feedback(&self, attempt: u32, of: u32) -> String {
        let what = match self {
            Self::Empty => "Your answer was empty. Answer the user, or call a tool.".to_owned(),
            Self::Withheld => "Your answer was withheld by the provider. Answer in other words.".to_owned(),
            Self::Refused => {
                "You refused to answer. If a part of the request can be answered, answer that; otherwise say why not.".to_owned()
            }
            Self::CallCutOff { tool } => format!(
                "Your call of {:?} ran into your limit of tokens before it was whole, and was not made. Call it again with less, \
                 or in parts.",
                Raw::from(tool.as_str()).line_within(MAX_NAME_BYTES)
            ),
            Self::TooLong | Self::CutOff => "Your answer was cut off at its limit of tokens. Answer more briefly, and whole.".to_owned(),
            Self::NoJson => {
                "Your answer holds no JSON. Answer with one JSON value that fits the schema, and nothing else.".to_owned()
            }
            Self::Mismatch(_) => {
                "Your answer does not fit the schema. Answer with one JSON value that fits, and nothing else.".to_owned()
            }
        };
        let note = format!("{NOTE_BEGINS}{what} (try {attempt} of {of})]");
        match self {
            Self::Mismatch(mismatches) => quoted(&note, mismatches.iter().map(Mismatch::to_string)),
            _ => note,
        }
    }
}

/// A sentence of the agent, followed by the mismatches, quoted: their values come from the model, and may
/// come from a plugin.
pub(crate) fn quoted(sentence: &str, mismatches: impl IntoIterator<Item = String>) -> String {
    let each: Vec<String> = mismatches.into_iter().collect();
    fence::closed("mismatches", sentence, &each.join("\n"))
}

fn join(mismatches: &[Mismatch]) -> String {
    let each: Vec<String> = mismatches.iter().map(Mismatch::to_string).collect();
    each.join("; ")
}
