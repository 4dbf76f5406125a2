//! The calls of one answer and their results.

use std::fmt;

use talon_llm::model::{Finish, Message, ToolCall};

use super::{CheckedCall, Offer};
use crate::budget::{self, Budgets};
use crate::media::PluginImages;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};

/// The results of one answer's calls. They arrive in any order, each with its call's index, and are returned
/// in the calls' order. The index is used since models use the same id twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch(Vec<Option<ToolResult>>);

/// A result does not fit the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// There is no such call.
    #[error("there is no call {0} in this batch")]
    NoSuchCall(usize),
    /// The call already has a result. The first one counts: the model may have been shown it.
    #[error("call {0} of this batch has its result already")]
    Duplicate(usize),
}

/// The plan for the calls of one answer.
#[derive(Debug)]
pub struct CallPlan<'o> {
    /// The calls to make, each with its index.
    pub run: Vec<(usize, CheckedCall<'o>)>,
    /// The results. Calls that are not made have theirs already.
    pub batch: Batch,
}

/// Checks all calls of an answer. A rejected call gets its result at once and does not affect the others.
#[must_use]
pub fn plan<'o>(calls: &'o [ToolCall], finish: Finish, offer: &'o Offer, budgets: &Budgets) -> CallPlan<'o> {
    let mut batch = Batch(vec![None; calls.len()]);
    let mut run = Vec::new();
    let at_once = budgets.calls_at_once.get() as usize;
    for (place, call) in calls.iter().enumerate() {
        if place >= at_once {
            let text = budget::over_limit_message(budgets);
            batch.0[place] = Some(ToolResult {
                outcome: CallOutcome::OverTheLimit,
                block: text.clone(),
                output: text,
                provenance: Provenance::default(),
            });
            continue;
        }
        match offer.check(call, finish == Finish::Length) {
            Ok(checked) => run.push((place, checked)),
            Err(refusal) => batch.0[place] = Some(refusal.result()),
        }
    }
    CallPlan { run, batch }
}

impl Batch {
    /// Stores a result.
    ///
    /// # Errors
    /// [`BatchError`]; nothing is changed.
    pub fn put(&mut self, place: usize, result: ToolResult) -> Result<(), BatchError> {
        match self.0.get_mut(place) {
            None => Err(BatchError::NoSuchCall(place)),
            Some(Some(_)) => Err(BatchError::Duplicate(place)),
            Some(empty) => {
                *empty = Some(result);
                Ok(())
            }
        }
    }

    /// The result of a call, if there is one.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&ToolResult> {
        self.0.get(place)?.as_ref()
    }

    /// The indices without a result.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        self.0.iter().enumerate().filter(|(_, result)| result.is_none()).map(|(place, _)| place).collect()
    }

    /// All results in the order of the calls, or the batch as it is while one is missing.
    ///
    /// # Errors
    /// The batch, if it is not complete.
    pub fn into_results(self) -> Result<Vec<ToolResult>, Self> {
        if self.0.iter().any(Option::is_none) {
            return Err(self);
        }
        Ok(self.0.into_iter().flatten().collect())
    }

    /// All results, with a text for each missing one: when a turn ends during its calls, the transcript still
    /// needs a result for each.
    #[must_use]
    pub fn give_up<T: fmt::Display>(self, why: impl Fn(usize) -> T) -> Vec<ToolResult> {
        let missing = |place| {
            let text = format!("error: {}", why(place));
            ToolResult {
                outcome: CallOutcome::Failed,
                block: text.clone(),
                output: text,
                provenance: Provenance::default(),
            }
        };
        let all = self.0.into_iter().enumerate();
        all.map(|(place, result)| result.unwrap_or_else(|| missing(place))).collect()
    }
}

/// The results as messages of the transcript, one a call, in their order; behind them those images that the tools
/// returned.
#[must_use]
pub fn messages(calls: &[ToolCall], results: &[ToolResult]) -> Vec<Message> {
    let each = calls.iter().zip(results).map(|(call, result)| Message::Tool {
        call_id: call.id.clone(),
        content: result.block.clone(),
        is_error: result.outcome != CallOutcome::Succeeded,
    });
    let images = results.iter().map(|result| &result.provenance.images).filter(|images| !images.is_empty());
    let images = images.map(|PluginImages { introduction, images }| Message::Images {
        introduction: introduction.clone(),
        images: images.clone(),
    });
    each.chain(images).collect()
}
