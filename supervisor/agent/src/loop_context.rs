//! The context of a turn.
//!
//! Facts change it through [`crate::machine::Turn`]; guards, effects and records read it. The counters are
//! private, so that only facts change them, and only increase: what remains of a budget is computed, and
//! never below 0.

use std::collections::BTreeMap;
use std::time::Duration;

use talon_llm::model::{Answer, ToolCall, Usage};

use crate::answer::AnswerVerdict;
use crate::budget::{BudgetCheck, Budgets};
use crate::progress::{self, Fingerprint};
use crate::tool_result::{CallOutcome, NEVER_OFFERED, ToolResult};
use crate::tools;

mod budget_check;
mod facts;
mod outcome;
mod tool_stats;

pub use outcome::{Failure, FailureReport, FinishedTurn};
pub use tool_stats::ToolStats;

/// The context of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopContext {
    budgets: Budgets,
    goal: String,
    iteration: u32,
    retries: u32,
    clarifications: u32,
    answer: Option<Answer>,
    results: Option<Vec<ToolResult>>,
    verdict: Option<AnswerVerdict>,
    failure: Option<Failure>,
    tallies: BTreeMap<String, ToolStats>,
    history: Vec<Fingerprint>,
    /// The longest wait that the model made between its calls, in seconds.
    longest_wait: u64,
    completed: Vec<String>,
    partial: Option<String>,
    usage: Usage,
    spent: TimeAndCost,
    spent_before: TimeAndCost,
}

/// What a turn has used of the time and cost budgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeAndCost {
    /// The time since the turn started.
    pub elapsed: Duration,
    /// The cost, in millionths of a US dollar.
    pub micro_usd: u64,
}

impl LoopContext {
    /// Starts a turn's context.
    #[must_use]
    pub fn new(goal: impl Into<String>, budgets: Budgets) -> Self {
        Self {
            budgets,
            goal: goal.into(),
            iteration: 0,
            retries: 0,
            clarifications: 0,
            answer: None,
            results: None,
            verdict: None,
            failure: None,
            tallies: BTreeMap::new(),
            history: Vec::new(),
            longest_wait: 0,
            completed: Vec::new(),
            partial: None,
            usage: Usage::default(),
            spent: TimeAndCost::default(),
            spent_before: TimeAndCost::default(),
        }
    }

    /// The turn's limits.
    #[must_use]
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// The person's request.
    #[must_use]
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// The number of the model's answers in this turn.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The number of questions left.
    #[must_use]
    pub fn iterations_left(&self) -> u32 {
        self.budgets.iterations.get().saturating_sub(self.iteration)
    }

    /// The number of rejected answers.
    #[must_use]
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// The number of retries left.
    #[must_use]
    pub fn retries_left(&self) -> u32 {
        self.budgets.structured_retries.saturating_sub(self.retries)
    }

    /// The number of retries left for the rejected answer.
    #[must_use]
    pub fn verdict_retries_left(&self) -> u32 {
        match &self.verdict {
            Some(AnswerVerdict::Invalid(error)) => {
                error.retries(self.budgets.structured_retries).saturating_sub(self.retries)
            }
            Some(AnswerVerdict::Accepted(_)) | None => 0,
        }
    }

    /// Whether the answer is a question to the person that may be asked: its only call, while the turn has
    /// such questions left and the model can still be asked with the reply.
    #[must_use]
    pub fn asks_person(&self) -> bool {
        let [call] = self.calls() else { return false };
        tools::question_of(call).is_some()
            && self.clarifications < self.budgets.clarifications
            && self.iterations_left() > 0
    }

    /// Whether a call or a batch came back with the same result, so that waiting before the next one helps.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.tallies.values().any(|tally| tally.identical_successes() > 1)
            || progress::repeats(&self.history) > 1
    }

    /// The model's answer to the last question.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// The calls of that answer.
    #[must_use]
    pub fn calls(&self) -> &[ToolCall] {
        self.answer.as_ref().map_or(&[], |answer| &answer.calls)
    }

    /// The results of those calls, in the same order.
    #[must_use]
    pub fn results(&self) -> Option<&[ToolResult]> {
        self.results.as_deref()
    }

    /// Whether the client makes calls of the answer, so that the turn ends with them.
    #[must_use]
    pub fn hands_over(&self) -> bool {
        let mut results = self.results.iter().flatten();
        results.any(|result| result.outcome == CallOutcome::HandedOver)
    }

    /// The check of the answer.
    #[must_use]
    pub fn verdict(&self) -> Option<&AnswerVerdict> {
        self.verdict.as_ref()
    }

    /// The failure.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Successes and errors by tool.
    #[must_use]
    pub fn tool_stats(&self) -> &BTreeMap<String, ToolStats> {
        &self.tallies
    }

    /// Whether the last batch has a call counted under this name.
    #[must_use]
    pub fn just_used(&self, tool: &str) -> bool {
        let results = self.results.as_deref().unwrap_or_default();
        self.calls().iter().zip(results).any(|(call, result)| match result.outcome {
            CallOutcome::NotOffered => tool == NEVER_OFFERED,
            CallOutcome::Succeeded | CallOutcome::Failed => tool == call.name,
            CallOutcome::OverTheLimit | CallOutcome::HandedOver => false,
        })
    }

    /// The fingerprint of each batch of calls, in order.
    #[must_use]
    pub fn history(&self) -> &[Fingerprint] {
        &self.history
    }

    /// Names of tools that run; for clients.
    #[must_use]
    pub fn pending(&self) -> Vec<&str> {
        let running = if self.results.is_none() { self.calls() } else { &[] };
        running.iter().map(|call| call.name.as_str()).collect()
    }

    /// Names of tools that have run, in their order; for clients.
    #[must_use]
    pub fn completed(&self) -> &[String] {
        &self.completed
    }

    /// The model's last text in this turn, if any: the partial answer of a turn without one.
    #[must_use]
    pub fn partial(&self) -> Option<&str> {
        self.partial.as_deref()
    }

    /// Tokens of all questions and answers.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Time and money used.
    #[must_use]
    pub fn spent(&self) -> TimeAndCost {
        self.spent
    }

    /// Time and money used at the last question.
    #[must_use]
    pub fn spent_before(&self) -> TimeAndCost {
        self.spent_before
    }

    /// The content of [`crate::machine::Effect::TellDone`].
    #[must_use]
    pub fn finished(&self) -> Option<FinishedTurn> {
        let Some(AnswerVerdict::Accepted(answer)) = &self.verdict else { return None };
        Some(FinishedTurn {
            answer: answer.clone(),
            iterations: self.iteration,
            usage: self.usage,
            micro_usd: self.spent.micro_usd,
        })
    }

    /// The content of [`crate::machine::Effect::TellEnd`].
    #[must_use]
    pub fn failure_report(&self) -> Option<FailureReport> {
        let reason = match (&self.failure, self.check_budgets()) {
            (Some(failure), _) => failure.clone(),
            (None, BudgetCheck::Exceeded(limit)) => Failure::Limit(limit),
            (None, BudgetCheck::Within(_)) => return None,
        };
        Some(FailureReport { sentence: reason.to_string(), reason, partial: self.partial.clone() })
    }
}
