//! How facts change the context.

use std::collections::BTreeSet;
use std::time::Duration;

use talon_llm::model::Answer;

use super::{Failure, LoopContext, ToolStats};
use crate::answer::AnswerVerdict;
use crate::progress::Fingerprint;
use crate::tool_result::{CallOutcome, NEVER_OFFERED, ToolResult};
use crate::tools;

impl LoopContext {
    /// Sets the time, as the driver reads it. It never decreases.
    pub(crate) fn advance_clock(&mut self, elapsed: Duration) {
        self.spent.elapsed = self.spent.elapsed.max(elapsed);
    }

    pub(crate) fn record_answer(&mut self, answer: Answer, micro_usd: u64) {
        self.iteration = self.iteration.saturating_add(1);
        self.spent.micro_usd = self.spent.micro_usd.saturating_add(micro_usd);
        self.usage.add(answer.usage.unwrap_or_default());
        if !answer.text.trim().is_empty() {
            self.partial = Some(answer.text.trim().to_owned());
        }
        self.answer = Some(answer);
    }

    /// Counts the results of a batch, if there is one for each call.
    pub(crate) fn record_results(&mut self, results: Vec<ToolResult>) {
        let calls = self.answer.as_ref().map_or(&[][..], |answer| &answer.calls);
        if calls.len() == results.len() {
            self.history.push(Fingerprint::of_batch(calls.iter().zip(&results)));
            let mut counted = BTreeSet::new();
            for (call, result) in calls.iter().zip(&results) {
                let name = if result.outcome == CallOutcome::NotOffered { NEVER_OFFERED } else { &call.name };
                match result.outcome {
                    // The same call several times in one answer counts as one repetition: the model has not
                    // seen its result yet, and a limit must not be reached before a warning.
                    CallOutcome::Succeeded => {
                        let print = Fingerprint::of_call(call, result);
                        if counted.insert(print) {
                            self.tallies.entry(name.to_owned()).or_default().succeeded(print);
                        }
                        self.completed.push(call.name.clone());
                    }
                    CallOutcome::Failed => {
                        self.tallies.entry(name.to_owned()).or_default().failed();
                        self.completed.push(call.name.clone());
                    }
                    CallOutcome::NotOffered => self.tallies.entry(name.to_owned()).or_default().failed(),
                    CallOutcome::OverTheLimit | CallOutcome::HandedOver => {}
                }
            }
        }
        self.results = Some(results);
        self.record_waits();
    }

    /// A wait that is longer than each before it makes what follows a new attempt: a model that polls a job
    /// with growing waits makes progress, and is bounded by its questions and its time.
    fn record_waits(&mut self) {
        let results = self.results.as_deref().unwrap_or_default();
        let waits = self.answer.iter().flat_map(|answer| &answer.calls).zip(results);
        let longest = waits
            .filter(|(_, result)| result.outcome == CallOutcome::Succeeded)
            .filter_map(|(call, _)| tools::wait_seconds(call))
            .max();
        if let Some(longest) = longest.filter(|longest| *longest > self.longest_wait) {
            self.longest_wait = longest;
            self.tallies.values_mut().for_each(ToolStats::restart_streak);
        }
    }

    /// Records the result of a question to the person.
    pub(crate) fn record_clarification(&mut self, result: ToolResult) {
        self.clarifications = self.clarifications.saturating_add(1);
        self.results = Some(vec![result]);
    }

    pub(crate) fn record_verdict(&mut self, verdict: AnswerVerdict) {
        self.verdict = Some(verdict);
    }

    pub(crate) fn record_failure(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    /// Counts an answer that goes back to the model.
    pub(crate) fn count_retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
    }

    /// Resets what holds for the previous question only, because the model is asked again.
    pub(crate) fn begin_question(&mut self) {
        self.answer = None;
        self.results = None;
        self.verdict = None;
        self.spent_before = self.spent;
    }
}
