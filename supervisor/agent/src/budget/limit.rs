//! The text for a limit that is reached.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tool_result::NEVER_OFFERED;

/// The limit that ended a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The model was asked as often as allowed.
    Iterations {
        /// The limit.
        most: u32,
    },
    /// A tool failed too often.
    ToolErrors {
        /// The tool.
        tool: String,
        /// The number of errors.
        errors: u32,
    },
    /// A tool returned the same result for the same arguments too often.
    IdenticalSuccesses {
        /// The tool.
        tool: String,
        /// The number of successes.
        times: u32,
    },
    /// The same calls had the same results too often.
    NoProgress {
        /// The number of repetitions.
        times: u32,
    },
    /// The turn took too long.
    WallTime {
        /// The limit.
        most: Duration,
    },
    /// The turn cost too much.
    Cost {
        /// The limit, in millionths of a US dollar.
        most_micro_usd: u64,
    },
}

impl Limit {
    /// The error code for logs, metrics and `--output json`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Iterations { .. } => "iterations",
            Self::ToolErrors { .. } => "tool_errors",
            Self::IdenticalSuccesses { .. } => "identical_successes",
            Self::NoProgress { .. } => "no_progress",
            Self::WallTime { .. } => "wall_time",
            Self::Cost { .. } => "cost",
        }
    }

    /// The message for the person: what happened, and what to do.
    #[must_use]
    pub fn for_user(&self) -> String {
        match self {
            Self::Iterations { most } => format!(
                "The model was asked {} and had no final answer yet. Ask it to go on, or split the task.",
                times(*most)
            ),
            Self::ToolErrors { tool, errors } if tool == NEVER_OFFERED => format!(
                "Stopped: the model called {tool} {}. Name the tool to use, or choose another model.",
                times(*errors)
            ),
            Self::ToolErrors { tool, errors } => format!(
                "Stopped: {tool} failed {}. See what it said above, and `talon plugin logs` of its plugin.",
                times(*errors)
            ),
            Self::IdenticalSuccesses { tool, times: n } => format!(
                "Stopped: the model called {tool} {} with the same result each time. Say more precisely what you need.",
                times(*n)
            ),
            Self::NoProgress { times: n } => format!(
                "Stopped: the model did the same {} and got the same. Say more precisely what you need.",
                times(*n)
            ),
            Self::WallTime { most } => format!(
                "Stopped: there was no answer within {} s. Ask for less at once, or allow a turn more time: agent.turn.wall_time.",
                most.as_secs_f64()
            ),
            Self::Cost { most_micro_usd } => format!(
                "Stopped: the turn has cost what it may, {}. Ask for less at once, choose a cheaper model, or allow a turn more: agent.turn.cost.",
                dollars(*most_micro_usd)
            ),
        }
    }

    /// The note in the transcript by which the model knows in the next turn how this one ended.
    #[must_use]
    pub fn for_model(&self) -> String {
        let what = match self {
            Self::Iterations { most } => format!("you were asked {} without a final answer", times(*most)),
            Self::ToolErrors { tool, errors } => failed(tool, *errors),
            Self::IdenticalSuccesses { tool, times: n } => {
                format!("you called {tool} {} with the same arguments and the same result", times(*n))
            }
            Self::NoProgress { times: n } => {
                format!("you made the same calls {} and they brought the same", times(*n))
            }
            Self::WallTime { .. } => "it took too long".to_owned(),
            Self::Cost { .. } => "it cost too much".to_owned(),
        };
        format!("[The turn was ended before a final answer: {what}. Do not begin it anew unasked.]")
    }
}

/// The errors counted under [`NEVER_OFFERED`] belong to calls of tools that do not exist, which cannot fail.
pub(super) fn failed(tool: &str, errors: u32) -> String {
    if tool == NEVER_OFFERED {
        format!("you called {tool} {}", times(errors))
    } else {
        format!("{tool} failed {}", times(errors))
    }
}

pub(super) fn times(n: u32) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

pub(super) fn dollars(micro_usd: u64) -> String {
    format!("${}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000)
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}
