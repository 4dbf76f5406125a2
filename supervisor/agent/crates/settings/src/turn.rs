//! `agent.turn`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Money, TimeSpan};

/// The limits of one turn. A turn is everything between a person's message and its answer. At a limit it ends
/// with a message and with the partial answer, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TurnKeys {
    /// The most questions to the model.
    ///
    /// 10: more rarely help, and each carries the whole context.
    #[schemars(range(min = 1, max = 1000))]
    pub iterations: u32,
    /// The most calls of one answer. Further calls of an answer are rejected, and the model is notified.
    #[schemars(range(min = 1, max = 100))]
    pub calls_at_once: u32,
    /// Which calls of one answer run concurrently.
    pub parallel: ParallelCalls,
    /// The most errors of one tool. A success cancels one error.
    #[schemars(range(min = 1, max = 1000))]
    pub tool_errors: u32,
    /// The most consecutive successes of one tool with the same arguments and result.
    #[schemars(range(min = 1, max = 1000))]
    pub identical_successes: u32,
    /// How often in a row a batch of calls may return the same.
    #[schemars(range(min = 1, max = 1000))]
    pub no_progress: u32,
    /// How often an answer that does not fit the requested schema goes back to the model.
    #[schemars(range(max = 10))]
    pub structured_retries: u32,
    /// How often an answer that reached the model's limit of tokens is continued where it was cut. After that
    /// the turn ends without an answer, with the text as a partial one.
    ///
    /// 3: four times what the model may say at once.
    #[schemars(range(max = 20))]
    pub continuations: u32,
    /// How often the model may ask the person something in the middle of a turn. It is offered that only where
    /// a person follows the turn; 0 offers it never.
    ///
    /// 3: a task that leaves more open is better talked about first.
    #[schemars(range(max = 20))]
    pub clarifications: u32,
    /// The most time from message to answer, without the time spent waiting for a person's approval.
    pub wall_time: TimeSpan,
    /// The most that its questions may cost together, in US dollars. Models without a known price are not
    /// counted.
    ///
    /// 1 dollar: about ten times the cost of ten questions of 6,000 tokens on a mid-tier model.
    pub cost: Option<Money>,
}

/// Which calls of one answer run concurrently. Results go to the model in the order of the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParallelCalls {
    /// All, but calls of one plugin of which one does not declare `read_only`: that one waits for the earlier
    /// ones of its plugin, and the later ones wait for it.
    #[default]
    All,
    /// Those that declare `read_only`. Another call waits for all earlier ones, and all later ones wait for
    /// it.
    ReadOnly,
    /// None: each call waits for the one before it.
    None,
}

impl Default for TurnKeys {
    fn default() -> Self {
        Self {
            iterations: 10,
            calls_at_once: 10,
            parallel: ParallelCalls::default(),
            tool_errors: 8,
            identical_successes: 3,
            no_progress: 3,
            structured_retries: 2,
            continuations: 3,
            clarifications: 3,
            wall_time: TimeSpan::from_secs(600),
            cost: "1".parse().ok(),
        }
    }
}
