//! What the agent stores: sessions, memories, models, approvals.

use serde_json::{Map, Value, json};
use talon_proto::agent::{
    Approval, CompactSessionResponse, Memory, Message, Model, ProviderState, Session, Workflow, WorkflowStep,
};

use super::parts::{call, cost, tool_result};

pub(in crate::client::agent) fn session(session: &Session) -> Value {
    let (pico, usd) = cost(session.cost_pico_usd);
    json!({
        "id": session.id,
        "sender": session.sender,
        "channel": session.channel,
        "state": session.state,
        "model": session.model,
        "thinking": session.thinking,
        "tools": session.tools,
        "created_unix_ms": session.created_unix_ms,
        "updated_unix_ms": session.updated_unix_ms,
        "messages": session.messages,
        "turn": session.turn,
        "cost_pico_usd": pico,
        "cost": usd,
        "title": session.title,
    })
}

pub(in crate::client::agent) fn message(message: &Message) -> Value {
    json!({
        "sequence": message.sequence,
        "role": message.role,
        "content": message.content,
        "tool_calls": message.tool_calls.iter().map(call).collect::<Value>(),
        "tool_results": message.tool_results.iter().map(tool_result).collect::<Value>(),
        "unix_ms": message.unix_ms,
        "summary": message.summary,
    })
}

pub(in crate::client::agent) fn compacted(session_id: &str, response: &CompactSessionResponse) -> Value {
    json!({
        "session_id": session_id,
        "messages": response.messages,
        "tokens_before": response.tokens_before,
        "tokens_after": response.tokens_after,
        "summary": response.summary,
    })
}

pub(in crate::client::agent) fn approval(approval: &Approval) -> Value {
    let mut args: Vec<(&String, &String)> = approval.args.iter().collect();
    args.sort();
    let args: Map<String, Value> =
        args.into_iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    json!({
        "id": approval.id,
        "session_id": approval.session_id,
        "sender": approval.sender,
        "plugin": approval.plugin,
        "action": approval.action,
        "args": args,
        "why": approval.why,
        "state": approval.state,
        "asked_unix_ms": approval.asked_unix_ms,
        "expires_unix_ms": approval.expires_unix_ms,
        "decided_by": approval.decided_by,
        "decided_unix_ms": approval.decided_unix_ms,
        "subagent": approval.subagent,
        "digest": approval.digest,
    })
}

pub(in crate::client::agent) fn memory(memory: &Memory) -> Value {
    json!({
        "id": memory.id,
        "content": memory.content,
        "tags": memory.tags,
        "source": memory.source,
        "created_unix_ms": memory.created_unix_ms,
        "last_used_unix_ms": memory.last_used_unix_ms,
        "count": memory.count,
        "workflow": memory.workflow.as_ref().map(workflow),
    })
}

fn workflow(workflow: &Workflow) -> Value {
    let step =
        |step: &WorkflowStep| json!({ "plugin": step.plugin, "action": step.action, "order": step.order });
    json!({
        "trigger": workflow.trigger,
        "steps": workflow.steps.iter().map(step).collect::<Value>(),
        "outcome": workflow.outcome,
    })
}

pub(in crate::client::agent) fn model(model: &Model) -> Value {
    json!({
        "id": model.id,
        "alias": model.alias,
        "tier": model.tier,
        "context_window": model.context_window,
        "tools": model.tools,
        "vision": model.vision,
        "input_price": model.input_price,
        "output_price": model.output_price,
        "cached_input_price": model.cached_input_price,
        "free": model.free,
        "weight": model.weight,
        "estimate": model.estimate,
        "state": model.state,
        "why": model.why,
    })
}

pub(in crate::client::agent) fn provider(provider: &ProviderState) -> Value {
    json!({
        "name": provider.name,
        "kind": provider.kind,
        "state": provider.state,
        "why": provider.why,
        "scripted": provider.scripted,
    })
}
