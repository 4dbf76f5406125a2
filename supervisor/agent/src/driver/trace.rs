//! The spans of a turn.

use talon_llm::model::{Answer, Finish, Request, ToolCall, Usage};
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::fallback::{Answered, ExhaustedError};

use super::TurnEnd;
use super::drive::TurnRun;
use super::turn_trace::{TurnTrace, state_span};
use crate::budget::BudgetUse;
use crate::compress::SummaryError;
use crate::loop_context::Failure;
use crate::machine::TransitionRecord;
use crate::tool_result::{CallOutcome, ToolResult};
use crate::tools::Tool;
use crate::traces::{OpenSpan, SpanContext};

/// The agent's own name; a sub-agent has its own.
const AGENT: &str = "talon";

fn with_budgets(span: OpenSpan, iteration: u32, budgets: &BudgetUse) -> OpenSpan {
    let span = span
        .number("talon.iteration", iteration.into())
        .number("talon.iterations_left", budgets.iterations_left.into())
        .number("talon.retries_left", budgets.retries_left.into())
        .number("talon.wall_time_left_ms", budgets.left_ms)
        .number("talon.tokens", budgets.tokens)
        .number("talon.cost_micro_usd", budgets.micro_usd);
    match budgets.micro_usd_left {
        Some(left) => span.number("talon.cost_left_micro_usd", left),
        None => span,
    }
}

fn with_usage(span: OpenSpan, usage: Usage) -> OpenSpan {
    span.number("gen_ai.usage.input_tokens", usage.input_tokens)
        .number("gen_ai.usage.output_tokens", usage.output_tokens)
        .number("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens)
        .number("gen_ai.usage.cache_creation.input_tokens", usage.cache_written_tokens)
}

impl TurnRun<'_> {
    /// Ends the span of a state, and begins that of the next.
    pub(super) fn trace_transition(&mut self, record: &TransitionRecord) {
        let Some(trace) = &mut self.trace else { return };
        let next = state_span(trace.turn.context(), record.to, record.event);
        let next = with_budgets(next, record.iteration, &record.budgets);
        std::mem::replace(&mut trace.state, next).end(&trace.tracer);
    }

    /// The position of what a turn starts.
    pub(super) fn trace_position(&self) -> Option<SpanContext> {
        self.trace.as_ref().map(|trace| trace.state.context())
    }

    /// Begins the span of a question to a model.
    pub(super) fn begin_model_span(&self, request: &Request) -> Option<OpenSpan> {
        let span = OpenSpan::begin(self.trace_position()?.child(), "chat".to_owned())
            .client()
            .text("gen_ai.operation.name", "chat")
            .text("gen_ai.conversation.id", self.spec.caller.session.as_str())
            .number("talon.tools_offered", u64::try_from(request.tools.len()).unwrap_or(u64::MAX));
        Some(match request.max_output_tokens {
            Some(most) => span.number("gen_ai.request.max_tokens", most.into()),
            None => span,
        })
    }

    /// Begins the span of a question for a summary.
    pub(super) fn begin_summary_span(&self) -> Option<OpenSpan> {
        let span = OpenSpan::begin(self.trace_position()?.child(), "chat".to_owned())
            .client()
            .text("gen_ai.operation.name", "chat")
            .text("gen_ai.conversation.id", self.spec.caller.session.as_str())
            .text("talon.purpose", "summary");
        Some(span)
    }

    /// Ends it with what came of it.
    pub(super) fn end_summary_span(
        &self,
        span: Option<OpenSpan>,
        said: &Result<Result<Box<Answered>, SummaryError>, Failure>,
    ) {
        let (Some(span), Some(trace)) = (span, &self.trace) else { return };
        let span = match said {
            Ok(Ok(answered)) => self.answered_span(span, std::slice::from_ref(answered)),
            Ok(Err(SummaryError::NoAnswer(exhausted))) => self.exhausted_span(span, exhausted),
            Ok(Err(SummaryError::Empty { model })) => {
                self.model_span(span, Some((&model.provider, &model.name))).failed("empty_summary")
            }
            Err(failure) => span.failed(failure.word()),
        };
        span.end(&trace.tracer);
    }

    /// Ends it with what came of it.
    pub(super) fn end_model_span(
        &self,
        span: Option<OpenSpan>,
        said: &Result<Result<Vec<Answered>, ExhaustedError>, Failure>,
    ) {
        let (Some(span), Some(trace)) = (span, &self.trace) else { return };
        let span = match said {
            Ok(Ok(answers)) => self.answered_span(span, answers),
            Ok(Err(exhausted)) => self.exhausted_span(span, exhausted),
            Err(failure) => span.failed(failure.word()),
        };
        span.end(&trace.tracer);
    }

    fn exhausted_span(&self, span: OpenSpan, exhausted: &ExhaustedError) -> OpenSpan {
        let last = exhausted.attempts.last();
        let model = last.map(|attempt| (attempt.provider.as_str(), attempt.model.as_str()));
        let class = last.and_then(|attempt| attempt.error.as_ref());
        let word = class.map_or("no_model", |error| talon_llm::route::retry::word(error.class));
        let attempts = u64::try_from(exhausted.attempts.len()).unwrap_or(u64::MAX);
        self.model_span(span, model).number("talon.attempts", attempts).failed(word)
    }

    fn model_span(&self, mut span: OpenSpan, model: Option<(&str, &str)>) -> OpenSpan {
        let (Some((provider, model)), Some(trace)) = (model, &self.trace) else { return span };
        span.rename(format!("chat {model}"));
        span.text("gen_ai.provider.name", trace.tracer.provider(provider))
            .text("talon.provider", provider)
            .text("gen_ai.request.model", model)
    }

    fn answered_span(&self, span: OpenSpan, answers: &[Answered]) -> OpenSpan {
        let Some(last) = answers.last() else { return span };
        let ModelRef { provider, name } = &last.model;
        let mut usage = Usage::default();
        answers.iter().for_each(|answered| usage.add(answered.charge.usage));
        let attempts: usize = answers.iter().map(|answered| answered.attempts.len()).sum();
        let Answer { model, finish, .. } = &last.answer;
        let span = self
            .model_span(span, Some((provider, name)))
            .text("gen_ai.response.model", model.as_str())
            .text("gen_ai.response.finish_reasons", finish_reason(*finish))
            .number("talon.attempts", u64::try_from(attempts).unwrap_or(u64::MAX));
        with_usage(span, usage)
    }

    /// Begins the span of a call.
    pub(super) fn begin_tool_span(&self, call: &ToolCall, tool: &Tool) -> Option<OpenSpan> {
        // As the conventions have it, the span is named after its tool.
        let name = format!("{}.{}", tool.plugin, tool.action);
        let span = OpenSpan::begin(self.trace_position()?.child(), format!("execute_tool {name}"))
            .text("gen_ai.operation.name", "execute_tool")
            .text("gen_ai.tool.name", name)
            .text("gen_ai.tool.type", "function")
            .text("gen_ai.tool.call.id", call.id.as_str())
            .text("talon.plugin", tool.plugin.as_str())
            .text("talon.action", tool.action.as_str());
        Some(span)
    }

    /// Ends it with its result.
    pub(super) fn end_tool_span(&self, span: Option<OpenSpan>, result: &ToolResult) {
        let (Some(span), Some(trace)) = (span, &self.trace) else { return };
        let span = match result.outcome {
            CallOutcome::Succeeded => span,
            CallOutcome::Failed => span.failed("tool_error"),
            CallOutcome::NotOffered => span.failed("not_offered"),
            CallOutcome::OverTheLimit => span.failed("not_run"),
            CallOutcome::HandedOver => span,
        };
        span.end(&trace.tracer);
    }

    /// Ends the turn's spans.
    pub(super) fn end_trace(&mut self, end: &TurnEnd) {
        let Some(TurnTrace { tracer, mut turn, state }) = self.trace.take() else { return };
        state.end(&tracer);
        let caller = &self.spec.caller;
        let agent = if caller.subagent.is_empty() { AGENT } else { &caller.subagent };
        turn.rename(format!("invoke_agent {agent}"));
        let turn = turn
            .text("gen_ai.operation.name", "invoke_agent")
            .text("gen_ai.agent.name", agent)
            .text("gen_ai.conversation.id", caller.session.as_str())
            .text("talon.correlation_id", caller.correlation_id.as_str())
            .number("talon.turn", caller.turn)
            .number("talon.iterations", end.iterations.into())
            .number("talon.tool_calls", end.tool_calls.into())
            .number("talon.cost_pico_usd", end.cost_pico_usd);
        let turn = match &self.account.model {
            Some(ModelRef { provider, name }) => turn
                .text("gen_ai.provider.name", tracer.provider(provider))
                .text("gen_ai.request.model", name.as_str()),
            None => turn,
        };
        let turn = with_usage(turn, end.usage);
        match &end.outcome {
            Ok(_) => turn,
            Err((word, _)) => turn.failed(word),
        }
        .end(&tracer);
    }
}

/// The words of the conventions.
fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered | Finish::Refused => "content_filter",
    }
}
