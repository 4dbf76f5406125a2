//! Warnings to the model before a limit ends the turn.

use talon_guard::Raw;
use talon_llm::model::NOTE_BEGINS;

use super::limit::{dollars, failed, times};

/// How much of a tool's name is repeated: a model may make up a long one.
const MAX_NAME_BYTES: usize = 80;

/// A limit that is near.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Warning {
    /// The next question is the last.
    LastIteration,
    /// One more error of this tool ends the turn.
    ToolErrors {
        /// The tool.
        tool: String,
        /// The number of its errors.
        errors: u32,
    },
    /// One more success of this tool with the same result ends the turn.
    IdenticalSuccesses {
        /// The tool.
        tool: String,
        /// The number of such successes.
        times: u32,
    },
    /// The same batch once more ends the turn.
    NoProgress {
        /// The number of repetitions.
        times: u32,
    },
    /// A call of the last answer ran into its limit of tokens, and was not made.
    CallCutOff {
        /// The tool.
        tool: String,
    },
    /// Most of the time is used.
    WallTime {
        /// The time left.
        left_seconds: u64,
    },
    /// Most of the money is spent.
    Cost {
        /// The money left, in millionths of a US dollar.
        left_micro_usd: u64,
    },
}

impl Warning {
    /// The sentence for the model.
    #[must_use]
    pub fn for_model(&self) -> String {
        match self {
            Self::LastIteration => {
                "This is the last time you are asked in this turn: answer now with what you have, and call no tool.".to_owned()
            }
            Self::ToolErrors { tool, errors } => format!(
                "In this turn {}; one more error ends it. Do something else, or answer with what you have.",
                failed(tool, *errors)
            ),
            Self::IdenticalSuccesses { tool, times: n } => format!(
                "You called {tool} {} with the same arguments, and the result was the same; once more ends the turn. Use what you \
                 have, or do something else.",
                times(*n)
            ),
            Self::NoProgress { times: n } => format!(
                "You made the same calls {} and they brought the same; once more ends the turn. Use what you have, or do something else.",
                times(*n)
            ),
            Self::CallCutOff { tool } => format!(
                "Your call of {:?} ran into your limit of tokens before it was whole, and was not made: call it again with less, or in parts.",
                Raw::from(tool.as_str()).line_within(MAX_NAME_BYTES)
            ),
            Self::WallTime { left_seconds } => {
                format!("The turn's time is nearly over, {left_seconds} s are left: come to an answer.")
            }
            Self::Cost { left_micro_usd } => {
                format!("The turn's budget is nearly spent, {} are left: come to an answer.", dollars(*left_micro_usd))
            }
        }
    }
}

/// Joins all warnings into one note.
#[must_use]
pub fn note(warnings: &[Warning]) -> String {
    let sentences: Vec<String> = warnings.iter().map(Warning::for_model).collect();
    format!("{NOTE_BEGINS}{}]", sentences.join(" "))
}
