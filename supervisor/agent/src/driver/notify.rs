//! What clients receive of a turn.

use talon_agent_settings::milliseconds;
use talon_llm::model::Usage;
use talon_llm::route::fallback::Attempt;
use talon_llm::route::retry;
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;

use super::TurnEnd;
use super::drive::TurnRun;
use crate::answer::AnswerError;
use crate::budget::BudgetUse;
use crate::context::Stats;
use crate::journal::TurnTotals;
use crate::loop_context::{Failure, FailureReport, FinishedTurn};
use crate::machine::{Activity, Event, Phase, State};
use crate::tokens::Accuracy;

/// How much of a request is shown as the turn's goal: it is part of each transition, and a request may have
/// 256 KiB.
const MAX_GOAL_CHARS: usize = 200;
/// The most tool names in a transition; by default a turn has ten iterations of ten calls.
const MAX_NAMES: usize = 100;

impl TurnRun<'_> {
    pub(super) fn notify_loop_state(
        &self,
        state: State,
        event: Event,
        phase: Phase,
        iteration: u32,
        left: &BudgetUse,
    ) {
        let context = self.turn.context();
        let goal = &self.spec.request;
        let goal_end = goal.char_indices().nth(MAX_GOAL_CHARS).map_or(goal.len(), |(at, _)| at);
        let completed = context.completed();
        self.spec.listener.on_chunk(Kind::Loop(agent::LoopState {
            phase: phase.word().to_owned(),
            iteration,
            max_iterations: context.budgets().iterations.get(),
            goal: goal[..goal_end].to_owned(),
            pending: context.pending().into_iter().take(MAX_NAMES).map(str::to_owned).collect(),
            completed: completed[completed.len().saturating_sub(MAX_NAMES)..].to_vec(),
            total_tokens: left.tokens,
            total_cost_pico_usd: saturated(self.account.pico_usd),
            state: state.word().to_owned(),
            event: event.word().to_owned(),
            budgets: Some(agent::BudgetsLeft {
                iterations: left.iterations_left,
                retries: left.retries_left,
                wall_time_ms: left.left_ms,
                cost_micro_usd: left.micro_usd_left,
            }),
            session_id: self.spec.caller.session.clone(),
        }));
    }

    pub(super) fn notice(&self, level: &str, text: String) {
        let notice = agent::Notice { level: level.to_owned(), text, discard_text: false };
        self.spec.listener.on_chunk(Kind::Notice(notice));
    }

    /// The error word of a failure, as the protocol defines it.
    pub(super) fn word(&self, failure: &Failure) -> &'static str {
        match failure {
            Failure::Limit(limit) => limit.word(),
            Failure::Answer(AnswerError::NoJson | AnswerError::Mismatch(_)) => "invalid_answer",
            Failure::Answer(error) => error.word(),
            Failure::Model(_) => self.account.word.unwrap_or("exhausted"),
            Failure::Window(_) => "context_full",
            Failure::Store(_)
            | Failure::Unanswered(_)
            | Failure::Cancelled
            | Failure::Dropped(_)
            | Failure::Hook(_)
            | Failure::Internal(_) => failure.word(),
        }
    }

    /// Sends the answer.
    pub(super) fn finish_with_answer(&self, finished: FinishedTurn) -> TurnEnd {
        self.finish_with(finished.answer.text, Vec::new())
    }

    /// Sends a text, and the calls that the client makes.
    pub(super) fn finish_with(&self, text: String, client_calls: Vec<agent::ClientCall>) -> TurnEnd {
        self.set_activity(Activity::Finished);
        self.notify_omitted();
        let mut end = self.end(Ok(text.clone()), None);
        if self.spec.outer.is_some() {
            end.originals = self.originals.repeated_in(&text);
        }
        let model = self.account.model.as_ref();
        self.spec.listener.on_chunk(Kind::Done(agent::Done {
            text,
            usage: Some(usage(end.usage)),
            provider: model.map(|model| model.provider.clone()).unwrap_or_default(),
            model: model.map(|model| model.name.clone()).unwrap_or_default(),
            iteration: end.iterations,
            cost_pico_usd: end.cost_pico_usd,
            duration_ms: end.duration_ms,
            attempts: end.attempts.iter().map(attempt).collect(),
            tool_calls: end.tool_calls,
            scripted: model.is_some_and(|model| is_scripted(&model.provider)),
            context: end.stats.as_ref().map(stats),
            finish: self.finish_word().to_owned(),
            models: self.account.models.iter().cloned().collect(),
            saved_pico_usd: saturated(self.account.saved_pico_usd),
            client_calls,
        }));
        end
    }

    /// Sends the failure.
    pub(super) fn finish_with_failure(&self, end: FailureReport) -> TurnEnd {
        self.notify_omitted();
        let word = self.word(&end.reason).to_owned();
        let received = self.partial_text.trim();
        let partial = if received.is_empty() { end.partial } else { Some(received.to_owned()) };
        // No hook has seen it.
        let partial = partial.filter(|_| !self.withholds_text());
        let end_report = self.end(Err((word.clone(), end.sentence.clone())), partial);
        self.spec.listener.on_chunk(Kind::Error(agent::Error {
            reason: word,
            message: end.sentence,
            partial: end_report.partial.clone().unwrap_or_default(),
            attempts: end_report.attempts.iter().map(attempt).collect(),
            usage: Some(usage(end_report.usage)),
            cost_pico_usd: end_report.cost_pico_usd,
            iteration: end_report.iterations,
            duration_ms: end_report.duration_ms,
            context: end_report.stats.as_ref().map(stats),
            finish: finish(&end.reason, self.account.word).to_owned(),
            models: self.account.models.iter().cloned().collect(),
        }));
        end_report
    }

    /// What the turn used so far, for its journal.
    pub(super) fn totals(&self, success: bool) -> TurnTotals {
        let end = self.end(Ok(String::new()), None);
        let model = self.account.model.as_ref();
        let failure = self.turn.context().failure_report().filter(|_| !success);
        let finish = failure.map_or("stop", |end| finish(&end.reason, self.account.word));
        TurnTotals {
            usage: end.usage,
            provider: model.map(|model| model.provider.clone()).unwrap_or_default(),
            model: model.map(|model| model.name.clone()).unwrap_or_default(),
            iteration: end.iterations,
            cost_pico_usd: end.cost_pico_usd,
            duration_ms: end.duration_ms,
            tool_calls: end.tool_calls,
            finish: finish.to_owned(),
        }
    }

    fn notify_omitted(&self) {
        let more = self.account.attempts_left_out;
        if more > 0 {
            self.notice("info", format!("{more} earlier attempts of this turn are not listed with its end."));
        }
    }

    fn end(&self, outcome: Result<String, (String, String)>, partial: Option<String>) -> TurnEnd {
        let context = self.turn.context();
        let mut usage = context.usage();
        usage.add(self.account.usage);
        TurnEnd {
            outcome,
            partial,
            usage,
            cost_pico_usd: saturated(self.account.pico_usd),
            duration_ms: milliseconds(self.began.elapsed()),
            iterations: context.iteration(),
            tool_calls: u32::try_from(context.completed().len()).unwrap_or(u32::MAX),
            attempts: self.account.attempts.iter().cloned().collect(),
            model: self.account.model.as_ref().map(ToString::to_string),
            models: self.account.models.iter().cloned().collect(),
            stats: self.account.stats.clone(),
            originals: Vec::new(),
            handed_over: None,
        }
    }
}

/// How a turn without an answer finished; empty if no model was to blame and no limit was reached.
fn finish(failure: &Failure, word: Option<&str>) -> &'static str {
    match failure {
        Failure::Limit(_) => "budget",
        Failure::Answer(error) => error.finish(),
        Failure::Cancelled | Failure::Unanswered(_) => "cancelled",
        Failure::Model(_) if word == Some("over_budget") => "budget",
        Failure::Model(_)
        | Failure::Store(_)
        | Failure::Window(_)
        | Failure::Dropped(_)
        | Failure::Hook(_)
        | Failure::Internal(_) => "",
    }
}

/// Whether the provider is scripted: these names are reserved for it (`models.providers`).
pub(super) fn is_scripted(provider: &str) -> bool {
    provider == "scripted" || provider.starts_with("scripted-")
}

fn saturated(pico_usd: u128) -> u64 {
    u64::try_from(pico_usd).unwrap_or(u64::MAX)
}

fn usage(usage: Usage) -> agent::Usage {
    agent::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        thinking_tokens: usage.thinking_tokens,
        cache_written_tokens: usage.cache_written_tokens,
    }
}

fn attempt(attempt: &Attempt) -> agent::Attempt {
    let error = attempt.error.as_ref();
    agent::Attempt {
        provider: attempt.provider.clone(),
        model: attempt.model.clone(),
        success: attempt.success,
        error_class: error.map(|error| retry::word(error.class).to_owned()).unwrap_or_default(),
        error: error.map(|error| error.message.clone()).unwrap_or_default(),
        latency_ms: attempt.latency_ms,
        cost_pico_usd: saturated(attempt.cost.picodollars()),
    }
}

fn stats(stats: &Stats) -> agent::ContextStats {
    let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    agent::ContextStats {
        window_tokens: number(stats.window.0),
        total_tokens: number(stats.total),
        system_tokens: number(stats.system),
        summary_tokens: number(stats.summary),
        recent_tokens: number(stats.recent),
        tool_result_tokens: number(stats.tool_results),
        tools_tokens: number(stats.tools),
        exact: stats.accuracy == Accuracy::Exact,
        compression_ratio: stats.compression_ratio,
        tools_offered: count(stats.tools_offered),
        tools_left_out: count(stats.tools_left_out),
        results_cut: count(stats.results_cut),
        result_tokens_cut: number(stats.result_tokens_cut),
        profile: stats.profile.word().to_owned(),
        turns: count(stats.turns),
        messages_left_out: count(stats.messages_left_out),
        images_left_out: count(stats.images_left_out),
    }
}
