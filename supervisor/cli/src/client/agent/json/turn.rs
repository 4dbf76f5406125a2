//! A turn as JSON: its chunks, and its outcome.

use serde_json::{Value, json};
use talon_proto::agent::{Done, Error, SubagentResult, chunk};

use super::parts::{PICO, call, parsed, result as tool_result, usage, with_cost};
use crate::client::agent::turn::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
use crate::exit;
use crate::json::fields;

/// One chunk, with its kind.
pub(in crate::client::agent) fn chunk(kind: &chunk::Kind) -> Value {
    let (kind, mut value) = match kind {
        chunk::Kind::Started(it) => ("started", fields(it)),
        chunk::Kind::Loop(it) => ("loop", fields(it)),
        chunk::Kind::Thinking(it) => ("thinking", fields(it)),
        chunk::Kind::Text(it) => ("text", fields(it)),
        chunk::Kind::ToolCall(it) => ("tool_call", call(it)),
        chunk::Kind::ToolProgress(it) => ("tool_progress", fields(it)),
        chunk::Kind::ToolStream(it) => ("tool_stream", fields(it)),
        chunk::Kind::ToolResult(it) => ("tool_result", tool_result(it)),
        chunk::Kind::Approval(it) => ("approval", fields(it)),
        chunk::Kind::SubagentStart(it) => ("subagent_start", fields(it)),
        chunk::Kind::SubagentResult(it) => ("subagent_result", subagent_result(it)),
        chunk::Kind::Notice(it) => ("notice", fields(it)),
        chunk::Kind::Plan(it) => ("plan", fields(it)),
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
            json!({ "reason": reason(failure.code()), "message": failure.to_string(), "finish": null })
        }
        TurnEnd::Stopped => json!({
            "reason": "cancelled",
            "message": "the turn was cancelled, and its end did not arrive",
            "finish": "cancelled",
        }),
        TurnEnd::Parked(it) => json!({
            "reason": "approval",
            "message": format!("the turn waits for an approval: decide with `talon approval approve {}`", it.id),
            "finish": null,
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
        value["result"] = one.result.as_ref().map(tool_result).into();
        value
    });
    json!({
        "session_id": heard.session_id,
        "turn": heard.turn,
        "correlation_id": heard.correlation_id,
        "calls": calls.collect::<Value>(),
        "subagents": heard.subagents.iter().map(subagent_result).collect::<Value>(),
        "approvals": heard.approvals,
        "notices": heard.notices,
        "plan": heard.plan,
    })
}

/// By hand: its keys stand in another order than in the contract.
fn done(done: &Done) -> Value {
    with_cost(json!({
        "text": done.text,
        "usage": usage(done.usage),
        "provider": done.provider,
        "model": done.model,
        "scripted": done.scripted,
        "iteration": done.iteration,
        PICO: done.cost_pico_usd,
        "duration_ms": done.duration_ms,
        "attempts": done.attempts,
        "tool_calls": done.tool_calls,
        "context": done.context,
        "finish": done.finish,
        "models": done.models,
        "saved_pico_usd": done.saved_pico_usd,
    }))
}

/// How the answer finished; `null` where no model's answer did.
fn finish(word: &str) -> Value {
    (!word.is_empty()).then_some(word).into()
}

fn failed(error: &Error) -> Value {
    let mut value = with_cost(fields(error));
    value["usage"] = usage(error.usage);
    value["finish"] = finish(&error.finish);
    value
}

fn subagent_result(result: &SubagentResult) -> Value {
    let mut value = with_cost(fields(result));
    value["result"] = parsed(&result.result);
    value
}
