//! What a message of the agent becomes: one function for each.

use serde_json::{Map, Value};
use talon_proto::agent;

use super::ServerEvent;
use super::agent::{
    AgentNotice, AgentPhase, AgentPlan, AgentResponse, AgentResponseDiscard, AgentResponseEnd, AgentThought,
    ErrorEvent, PlanStep, SubagentResult, SubagentStart, TokenUsage,
};
use super::approval::{ClarificationRequest, ConfirmationRequest, DecisionEvent};
use super::client_message::arguments;
use super::ids::{session_id, tool_call_id};
use super::tool::{ToolCallEvent, ToolProgressEvent, ToolResultEvent, ToolResultMetadata, ToolStreamEvent};

/// Picodollars in a US dollar.
const PICO: f64 = 1e12;
/// How much of a call's arguments the sentence of a confirmation shows, in bytes; `args` has all.
const MAX_SHOWN_ARGUMENTS: usize = 500;
/// The answers to a confirmation, as their buttons read.
const ACTIONS: [&str; 2] = ["Allow", "Deny"];

/// In US dollars. Amounts are far below 2^53 picodollars of what is spent at once; a sum of more loses fractions of a cent.
pub(crate) fn dollars(pico: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "said above")]
    let pico = pico as f64;
    pico / PICO
}

pub(crate) fn usage(usage: Option<&agent::Usage>) -> TokenUsage {
    let usage = usage.copied().unwrap_or_default();
    TokenUsage {
        prompt_tokens: usage.input_tokens,
        completion_tokens: usage.output_tokens,
        total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
    }
}

pub(super) fn text(session: &str, text: agent::Text) -> ServerEvent {
    ServerEvent::AgentResponse(AgentResponse {
        session_id: session_id(session),
        content: text.text,
        whole: text.whole,
        attempt: None,
        offset: None,
    })
}

pub(super) fn thought(session: &str, thought: agent::Thinking) -> ServerEvent {
    let session_id = session_id(session);
    ServerEvent::AgentThought(AgentThought { session_id, content: thought.text, attempt: None, offset: None })
}

pub(super) fn phase(session: &str, state: agent::LoopState) -> ServerEvent {
    ServerEvent::AgentPhase(AgentPhase {
        session_id: session_id(session),
        phase: state.phase,
        iteration: state.iteration,
        max_iterations: state.max_iterations,
        goal: state.goal,
        pending: state.pending,
        completed: state.completed,
        total_tokens_used: state.total_tokens,
        total_cost: dollars(state.total_cost_pico_usd),
    })
}

pub(crate) fn tool_call(session: &str, call: agent::ToolCall) -> ToolCallEvent {
    ToolCallEvent {
        session_id: session_id(session),
        id: tool_call_id(session, &call.call_id),
        tool: call.tool,
        args: arguments(&call.arguments),
    }
}

pub(crate) fn tool_result(session: &str, result: agent::ToolResult) -> ToolResultEvent {
    ToolResultEvent {
        session_id: session_id(session),
        id: tool_call_id(session, &result.call_id),
        tool: result.tool,
        success: result.success,
        output: result.output,
        metadata: ToolResultMetadata {
            execution_time: result.duration_ms,
            truncated: result.truncated,
            confirmation: Some(result.confirmation).filter(|state| !state.is_empty()),
        },
    }
}

pub(super) fn tool_progress(session: &str, progress: agent::ToolProgress) -> ServerEvent {
    ServerEvent::ToolProgress(ToolProgressEvent {
        session_id: session_id(session),
        id: tool_call_id(session, &progress.call_id),
        progress: finite(progress.progress),
        total: progress.total.filter(|total| total.is_finite()),
        message: progress.message,
    })
}

/// JSON has no number for what is none.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

pub(super) fn tool_stream(session: &str, stream: agent::ToolStream) -> ServerEvent {
    ServerEvent::ToolStream(ToolStreamEvent {
        session_id: session_id(session),
        id: tool_call_id(session, &stream.call_id),
        lines: stream.lines,
        left_out_lines: stream.left_out_lines,
        left_out_bytes: stream.left_out_bytes,
    })
}

pub(super) fn subagent_start(session: &str, start: agent::SubagentStart) -> ServerEvent {
    ServerEvent::SubagentStart(SubagentStart {
        session_id: session_id(session),
        id: tool_call_id(session, &start.call_id),
        agent: start.agent,
        task: start.task,
    })
}

pub(super) fn subagent_result(session: &str, result: agent::SubagentResult) -> ServerEvent {
    ServerEvent::SubagentResult(SubagentResult {
        session_id: session_id(session),
        id: tool_call_id(session, &result.call_id),
        agent: result.agent,
        result: serde_json::from_str(&result.result).unwrap_or(Value::Null),
        error: Some(result.error).filter(|error| !error.is_empty()),
        tokens_used: result.tokens,
        cost: dollars(result.cost_pico_usd),
        duration: result.duration_ms,
    })
}

/// A notice, and before it that earlier pieces are void, if it says so.
pub(super) fn notice(session: &str, notice: agent::Notice) -> Vec<ServerEvent> {
    let session_id = session_id(session);
    let discard = notice.discard_text.then(|| {
        ServerEvent::AgentResponseDiscard(AgentResponseDiscard {
            session_id: session_id.clone(),
            attempt: None,
        })
    });
    let said = ServerEvent::AgentNotice(AgentNotice { session_id, level: notice.level, text: notice.text });
    discard.into_iter().chain([said]).collect()
}

pub(super) fn plan(session: &str, plan: agent::Plan) -> ServerEvent {
    let steps = plan.steps.into_iter().map(|step| PlanStep { text: step.text, state: step.state }).collect();
    let (revision, approved) = (plan.revision, plan.approved);
    ServerEvent::AgentPlan(AgentPlan { session_id: session_id(session), revision, approved, steps })
}

pub(super) fn end(session: &str, done: &agent::Done) -> ServerEvent {
    ServerEvent::AgentResponseEnd(AgentResponseEnd {
        session_id: session_id(session),
        usage: usage(done.usage.as_ref()),
        provider_id: done.provider.clone(),
        model: done.model.clone(),
        iteration: done.iteration,
    })
}

pub(super) fn error(session: &str, error: agent::Error) -> ServerEvent {
    ServerEvent::Error(ErrorEvent {
        session_id: Some(session_id(session)),
        reply_to: None,
        reason: error.reason,
        message: error.message,
        partial: Some(error.partial).filter(|partial| !partial.is_empty()),
        retry_after: None,
    })
}

/// Something that waits for a person, or no more.
pub(crate) fn approval(approval: agent::Approval) -> ServerEvent {
    let session_id = session_id(&approval.session_id);
    let is_question = !approval.question.is_empty();
    if approval.state != "pending" {
        let decided = DecisionEvent { session_id, id: approval.id, state: approval.state };
        return if is_question {
            ServerEvent::ClarificationDecided(decided)
        } else {
            ServerEvent::ConfirmationDecided(decided)
        };
    }
    if is_question {
        return ServerEvent::ClarificationRequest(ClarificationRequest {
            session_id,
            id: approval.id,
            question: approval.question,
            options: approval.choices,
            plugin: Some(approval.plugin).filter(|plugin| !plugin.is_empty()),
            schema: serde_json::from_str(&approval.form).ok(),
            expires_at: approval.expires_unix_ms,
        });
    }
    let args: Map<String, Value> =
        approval.args.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    let is_plan = approval.plan.is_some();
    let tool = if is_plan { String::new() } else { format!("{}.{}", approval.plugin, approval.action) };
    let what = match &approval.plan {
        Some(plan) => plan.steps.iter().map(|step| format!("\n• {}", step.text)).collect(),
        None => wanted(&tool, &args),
    };
    ServerEvent::ConfirmationRequest(ConfirmationRequest {
        session_id,
        id: approval.id,
        text: format!("⚠️ The assistant wants to run: {what}"),
        actions: ACTIONS.map(str::to_owned).to_vec(),
        tool,
        args: Value::Object(args),
        why: approval.why,
        digest: approval.digest,
        expires_at: approval.expires_unix_ms,
    })
}

/// A call in one line: of a single argument its text alone, as somebody who knows the command reads it.
fn wanted(tool: &str, args: &Map<String, Value>) -> String {
    let mut values = args.values();
    let shown = match (values.next(), values.next()) {
        (None, _) => String::new(),
        (Some(Value::String(only)), None) => only.clone(),
        _ => Value::Object(args.clone()).to_string(),
    };
    let cut = shown.floor_char_boundary(MAX_SHOWN_ARGUMENTS);
    let more = if cut < shown.len() { " …" } else { "" };
    format!("{tool} {}{more}", &shown[..cut]).trim_end().to_owned()
}
