//! `agent.turn`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Money, TimeSpan};

/// What one turn, which is all that follows on one message of a person, may use. At a limit it ends with a sentence and with what
/// there is of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TurnKeys {
    /// Questions to the model.
    ///
    /// 10: more seldom help, and each carries the whole context.
    #[schemars(range(min = 1, max = 1000))]
    pub iterations: u32,
    /// Calls of one answer that run, all of them at once. What an answer calls beyond that is not run, and the model is told.
    #[schemars(range(min = 1, max = 100))]
    pub calls_at_once: u32,
    /// Errors of one tool. A success takes one back.
    #[schemars(range(min = 1, max = 1000))]
    pub tool_errors: u32,
    /// Successes of one tool in a row that are the same in arguments and result.
    #[schemars(range(min = 1, max = 1000))]
    pub identical_successes: u32,
    /// How often a batch of calls may bring the same in a row.
    #[schemars(range(min = 1, max = 1000))]
    pub no_progress: u32,
    /// How often an answer that does not fit the asked schema goes back to the model.
    #[schemars(range(max = 10))]
    pub structured_retries: u32,
    /// From the message to the answer, without the time for which it waits for a person's word.
    pub wall_time: TimeSpan,
    /// The most that its questions may cost together, in US dollars. What a model without a known price uses is not counted.
    ///
    /// 1 dollar: some ten times what ten questions of 6,000 tokens cost on a mid-tier model.
    pub cost: Option<Money>,
}

impl Default for TurnKeys {
    fn default() -> Self {
        Self {
            iterations: 10,
            calls_at_once: 10,
            tool_errors: 8,
            identical_successes: 3,
            no_progress: 3,
            structured_retries: 2,
            wall_time: TimeSpan::from_secs(600),
            cost: "1".parse().ok(),
        }
    }
}
