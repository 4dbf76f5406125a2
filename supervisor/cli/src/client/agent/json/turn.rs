//! A turn as JSON: its chunks, and its outcome.

use serde_json::{Value, json};
use talon_proto::agent::{BudgetsLeft, ContextStats, Done, Error, LoopState, SubagentResult, chunk};

use super::parts::{attempt, call, cost, parsed, tool_result, usage};
use super::records::approval;
use crate::client::agent::turn::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
use crate::exit;

/// One chunk, with its kind.
pub(in crate::client::agent) fn chunk(kind: &chunk::Kind) -> Value {
    let (kind, mut value) = match kind {
        chunk::Kind::Started(it) => (
            "started",
            json!({ "session_id": it.session_id, "turn": it.turn, "correlation_id": it.correlation_id }),
        ),
        chunk::Kind::Loop(it) => ("loop", state(it)),
        chunk::Kind::Thinking(it) => ("thinking", json!({ "text": it.text })),
        chunk::Kind::Text(it) => ("text", json!({ "text": it.text })),
        chunk::Kind::ToolCall(it) => ("tool_call", call(it)),
        chunk::Kind::ToolProgress(it) => (
            "tool_progress",
            json!({ "call_id": it.call_id, "progress": it.progress, "total": it.total, "message": it.message }),
        ),
        chunk::Kind::ToolResult(it) => ("tool_result", tool_result(it)),
        chunk::Kind::Approval(it) => ("approval", approval(it)),
        chunk::Kind::SubagentStart(it) => {
            ("subagent_start", json!({ "agent": it.agent, "task": it.task, "call_id": it.call_id }))
        }
        chunk::Kind::SubagentResult(it) => ("subagent_result", subagent_result(it)),
        chunk::Kind::Notice(it) => {
            ("notice", json!({ "level": it.level, "text": it.text, "discard_text": it.discard_text }))
        }
        chunk::Kind::Done(it) => ("done", done(it)),
        chunk::Kind::Error(it) => ("error", failed(it)),
    };
    let mut whole = json!({ "kind": kind });
    if let (Some(whole), Some(value)) = (whole.as_object_mut(), value.as_object_mut()) {
        whole.append(value);
    }
    whole
}

/// The whole turn as one object.
pub(in crate::client::agent) fn result(told: &TurnOutcome, schema: bool) -> Value {
    let mut whole = json!({ "ok": matches!(told.end, TurnEnd::Done(_)) });
    let end = match &told.end {
        TurnEnd::Done(it) => {
            let mut value = done(it);
            value["answer"] = if schema { parsed(&it.text) } else { Value::Null };
            value["reason"] = Value::Null;
            value
        }
        TurnEnd::Error(it) => failed(it),
        TurnEnd::Failed(failure) => {
            json!({ "reason": reason(failure.code()), "message": failure.to_string() })
        }
        TurnEnd::Stopped => json!({
            "reason": "cancelled",
            "message": "the turn was cancelled, and its end did not arrive",
        }),
        TurnEnd::Parked(it) => json!({
            "reason": "approval",
            "message": format!("the turn waits for an approval: decide with `talon approval approve {}`", it.id),
        }),
    };
    for part in [end, collected(&told.record)] {
        if let (Some(whole), Value::Object(mut part)) = (whole.as_object_mut(), part) {
            whole.append(&mut part);
        }
    }
    // The agent does not know why this client cancelled.
    if told.stop == Some(StopReason::TimedOut) && !matches!(told.end, TurnEnd::Done(_)) {
        whole["reason"] = "timed_out".into();
    }
    whole
}

/// The reason for which a turn could not be followed, as one word.
fn reason(code: u8) -> &'static str {
    match code {
        exit::USAGE => "invalid",
        exit::REFUSED => "refused",
        exit::DENIED => "denied",
        exit::UNREACHABLE => "unreachable",
        _ => "failed",
    }
}

fn collected(heard: &TurnRecord) -> Value {
    let calls = heard.calls.iter().map(|one| {
        let mut value = call(&one.call);
        value["result"] = one.result.as_ref().map_or(Value::Null, tool_result);
        value
    });
    json!({
        "session_id": heard.session_id,
        "turn": heard.turn,
        "correlation_id": heard.correlation_id,
        "calls": calls.collect::<Value>(),
        "subagents": heard.subagents.iter().map(subagent_result).collect::<Value>(),
        "approvals": heard.approvals.iter().map(approval).collect::<Value>(),
        "notices": heard.notices,
    })
}

fn done(done: &Done) -> Value {
    let (pico, usd) = cost(done.cost_pico_usd);
    json!({
        "text": done.text,
        "usage": usage(&done.usage.unwrap_or_default()),
        "provider": done.provider,
        "model": done.model,
        "scripted": done.scripted,
        "iteration": done.iteration,
        "cost_pico_usd": pico,
        "cost": usd,
        "duration_ms": done.duration_ms,
        "attempts": done.attempts.iter().map(attempt).collect::<Value>(),
        "tool_calls": done.tool_calls,
        "context": done.context.as_ref().map(context),
    })
}

fn failed(error: &Error) -> Value {
    let (pico, usd) = cost(error.cost_pico_usd);
    json!({
        "reason": error.reason,
        "message": error.message,
        "partial": error.partial,
        "attempts": error.attempts.iter().map(attempt).collect::<Value>(),
        "usage": usage(&error.usage.unwrap_or_default()),
        "cost_pico_usd": pico,
        "cost": usd,
        "iteration": error.iteration,
        "duration_ms": error.duration_ms,
    })
}

fn context(stats: &ContextStats) -> Value {
    json!({
        "window_tokens": stats.window_tokens,
        "total_tokens": stats.total_tokens,
        "system_tokens": stats.system_tokens,
        "summary_tokens": stats.summary_tokens,
        "recent_tokens": stats.recent_tokens,
        "tool_result_tokens": stats.tool_result_tokens,
        "tools_tokens": stats.tools_tokens,
        "exact": stats.exact,
        "compression_ratio": stats.compression_ratio,
        "tools_offered": stats.tools_offered,
        "tools_left_out": stats.tools_left_out,
        "results_cut": stats.results_cut,
    })
}

fn state(state: &LoopState) -> Value {
    let budgets = |left: &BudgetsLeft| {
        json!({
            "iterations": left.iterations,
            "retries": left.retries,
            "wall_time_ms": left.wall_time_ms,
            "cost_micro_usd": left.cost_micro_usd,
        })
    };
    json!({
        "phase": state.phase,
        "iteration": state.iteration,
        "max_iterations": state.max_iterations,
        "goal": state.goal,
        "pending": state.pending,
        "completed": state.completed,
        "total_tokens": state.total_tokens,
        "total_cost_pico_usd": state.total_cost_pico_usd,
        "state": state.state,
        "event": state.event,
        "budgets": state.budgets.as_ref().map(budgets),
        "session_id": state.session_id,
    })
}

fn subagent_result(result: &SubagentResult) -> Value {
    let (pico, usd) = cost(result.cost_pico_usd);
    json!({
        "agent": result.agent,
        "call_id": result.call_id,
        "result": parsed(&result.result),
        "error": result.error,
        "tokens": result.tokens,
        "cost_pico_usd": pico,
        "cost": usd,
        "duration_ms": result.duration_ms,
    })
}
