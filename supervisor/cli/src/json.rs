//! Results as JSON. The keys are those of `proto/talon/host/v1/host.proto` and are stable.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use talon_proto::host::{
    AgentStatus, AuditStatus, Event, ExecuteResponse, GetPluginResponse, GetStatusResponse, GuardReport,
    Instance, LogLine, Outcome, Peer, Plugin, PluginCounters, RefusedPlugin, Settings, StateStatus, Usage,
};
use talon_proto::plugin::{Action, GlossaryEntry, KnowledgeArticle, Parameter, PluginCapabilities};

/// The key of the guarded block, which is printed unchanged.
pub(crate) const BLOCK: &str = "block";

pub(crate) fn answer(answer: &ExecuteResponse) -> Value {
    let outcome = match answer.outcome() {
        Outcome::Unspecified => "unspecified",
        Outcome::Ok => "ok",
        Outcome::ToolError => "tool_error",
        Outcome::Refused => "refused",
        Outcome::HostFault => "host_fault",
    };
    json!({
        "call_id": answer.call_id,
        "outcome": outcome,
        BLOCK: answer.block,
        "content": answer.content,
        "error": answer.error,
        "structured_content": answer.structured_content,
        "reason": answer.reason,
        "retryable": answer.retryable,
        "duration_us": answer.duration_us,
        "report": report(answer.report.clone().unwrap_or_default()),
    })
}

pub(crate) fn report(report: GuardReport) -> Value {
    json!({
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "bytes_left_out": report.bytes_left_out,
        "truncated": report.truncated,
        "neutralised": sorted(report.neutralised),
        "kinds": sorted(report.kinds),
        "flags": report.flags,
        "structured_as_text": report.structured_as_text,
        "digest": report.digest,
        "tainted_by": report.tainted_by,
        "handle": report.handle,
    })
}

pub(crate) fn plugins(plugins: &[Plugin]) -> Value {
    plugins.iter().map(plugin).collect()
}

pub(crate) fn plugin(plugin: &Plugin) -> Value {
    json!({
        "name": plugin.name,
        "declared_name": plugin.declared_name,
        "state": plugin.state,
        "desired": plugin.desired,
        "reason": plugin.reason,
        "instances": plugin.instances.iter().map(instance).collect::<Value>(),
        "actions": plugin.actions,
        "deaths": plugin.deaths,
        "not_enforced": plugin.not_enforced,
        "calls_in_flight": plugin.calls_in_flight,
        "calls_waiting": plugin.calls_waiting,
        "breaker": plugin.breaker,
        "quarantined": plugin.quarantined,
        "changed_actions": plugin.changed_actions,
        "changed_texts": plugin.changed_texts,
        "watched": plugin.watched,
        "replacement_problem": plugin.replacement_problem,
        "restarts": sorted(plugin.restarts.clone()),
        "counters": counters(&plugin.counters.clone().unwrap_or_default()),
    })
}

fn instance(instance: &Instance) -> Value {
    // `null` instead of pid 0: in a script, `kill 0` would kill the script's own process group.
    let running = (instance.pid != 0).then_some(instance);
    json!({
        "index": instance.index,
        "state": instance.state,
        "pid": running.map(|instance| instance.pid),
        "generation": instance.generation,
        "uid": running.map(|instance| instance.uid),
        "ready_since_unix_ms": instance.ready_since_unix_ms,
        "start_to_ready_us": instance.start_to_ready_us,
        "calls_in_flight": instance.calls_in_flight,
        "usage": instance.usage.as_ref().map(usage),
        "taken_over": instance.taken_over,
    })
}

fn counters(counters: &PluginCounters) -> Value {
    json!({
        "calls": counters.calls,
        "tool_errors": counters.tool_errors,
        "refusals": counters.refusals,
        "faults": counters.faults,
        "neutralised": sorted(counters.neutralised.clone()),
        "truncated": counters.truncated,
        "tainted": counters.tainted,
        "flagged": sorted(counters.flagged.clone()),
        "log_lines": counters.log_lines,
        "log_lines_dropped": counters.log_lines_dropped,
        "duration_us": counters.duration_us,
        "p50_us": counters.p50_us,
        "p99_us": counters.p99_us,
    })
}

pub(crate) fn plugin_details(response: &GetPluginResponse) -> Value {
    json!({
        "plugin": response.plugin.as_ref().map(plugin),
        "capabilities": response.capabilities.as_ref().map(capabilities),
        "settings": response.settings.as_ref().map(settings),
        "declaration_digests": sorted(response.declaration_digests.clone()),
    })
}

fn settings(settings: &Settings) -> Value {
    json!({
        "command": settings.command,
        "sha256": settings.sha256,
        "dialect": settings.dialect,
        "timeout_ms": settings.timeout_ms,
        "max_response_bytes": settings.max_response_bytes,
        "max_restarts": settings.max_restarts,
        "restart_on_failure": settings.restart_on_failure,
        "source": settings.source,
        "sandbox_mode": settings.sandbox_mode,
        "sandbox_profile": settings.sandbox_profile,
        "sandbox_network": settings.sandbox_network,
        "sandbox_grants": settings.sandbox_grants,
        "changed_tools": settings.changed_tools,
    })
}

pub(crate) fn capabilities(capabilities: &PluginCapabilities) -> Value {
    let glossary = |entry: &GlossaryEntry| {
        json!({
            "term": entry.term,
            "definition": entry.definition,
            "category": entry.category,
            "tags": entry.tags,
            "synonyms": entry.synonyms,
        })
    };
    let article = |article: &KnowledgeArticle| json!({ "id": article.id, "title": article.title, "content": article.content, "tags": article.tags });
    json!({
        "name": capabilities.name,
        "description": capabilities.description,
        "actions": capabilities.actions.iter().map(action).collect::<Value>(),
        "system_prompt_addition": capabilities.system_prompt_addition,
        "glossary": capabilities.glossary.iter().map(glossary).collect::<Value>(),
        "knowledge_articles": capabilities.knowledge_articles.iter().map(article).collect::<Value>(),
        "supports_callbacks": capabilities.supports_callbacks,
    })
}

fn action(action: &Action) -> Value {
    json!({
        "name": action.name,
        "description": action.description,
        "parameters": action.parameters.iter().map(parameter).collect::<Value>(),
        "user_only": action.user_only,
        "inject_context_args": action.inject_context_args,
        "always_include": action.always_include,
        "read_only": action.read_only,
        "destructive": action.destructive,
        "output_schema": action.output_schema,
    })
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "description": parameter.description,
        "type": parameter.r#type,
        "required": parameter.required,
        "schema": parameter.schema,
    })
}

pub(crate) fn status(status: &GetStatusResponse) -> Value {
    let refused = |refused: &RefusedPlugin| json!({ "name": refused.name, "path": refused.path, "reason": refused.reason });
    let peer = |peer: &Peer| json!({ "uid": peer.uid, "gid": peer.gid, "pid": peer.pid, "role": peer.role, "origin": peer.origin });
    json!({
        "version": status.version,
        "pid": status.pid,
        "started_unix_ms": status.started_unix_ms,
        "runtime_dir": status.runtime_dir,
        "data_dir": status.data_dir,
        "config_file": status.config_file,
        "config_unix_ms": status.config_unix_ms,
        "config_problem": status.config_problem,
        "state": status.state,
        "plugins": plugins(&status.plugins),
        "not_enforced": status.not_enforced,
        "refused": status.refused.iter().map(refused).collect::<Value>(),
        "you": status.you.as_ref().map(peer),
        "state_service": status.state_service.as_ref().map(state_status),
        "agent": status.agent.as_ref().map(agent),
        "config_unix_ms": status.config_unix_ms,
        "config_problem": status.config_problem,
        "taken_over": status.taken_over,
        "audit": status.audit.as_ref().map(audit),
        "usage": status.usage.as_ref().map(usage),
        "tier": status.tier,
        "log_lines_dropped": status.log_lines_dropped,
    })
}

fn agent(agent: &AgentStatus) -> Value {
    json!({
        "state": agent.state,
        "pid": agent.pid,
        "uid": agent.uid,
        "restarts": agent.restarts,
        "problems": agent.problems,
        "engine": agent.engine,
        "place": agent.place,
        "turns_running": agent.turns_running,
        "approvals_pending": agent.approvals_pending,
        "providers": agent.providers.iter().map(|provider| json!({
            "name": provider.name,
            "state": provider.state,
            "why": provider.why,
        })).collect::<Value>(),
    })
}

fn audit(audit: &AuditStatus) -> Value {
    json!({
        "state": audit.state,
        "file": audit.file,
        "problem": audit.problem,
        "records": audit.records,
        "lost": audit.lost,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "cpu_us": usage.cpu_us,
        "memory_bytes": usage.memory_bytes,
        "processes": usage.processes,
        "source": usage.source,
    })
}

fn state_status(state: &StateStatus) -> Value {
    json!({
        "state": state.state,
        "engine": state.engine,
        "place": state.place,
        "problem": state.problem,
        "pid": state.pid,
        "uid": state.uid,
        "restarts": state.restarts,
    })
}

pub(crate) fn event(event: &Event) -> Value {
    json!({
        "sequence": event.sequence,
        "unix_ms": event.unix_ms,
        "plugin": event.plugin,
        "instance": event.instance,
        "kind": event.kind,
        "message": event.message,
        "fields": sorted(event.fields.clone()),
    })
}

pub(crate) fn log_line(line: &LogLine) -> Value {
    json!({
        "unix_ms": line.unix_ms,
        "plugin": line.plugin,
        "instance": line.instance,
        "level": line.level,
        "stream": line.stream,
        "text": line.text,
    })
}

/// A map in key order, so that equal results print equal text.
fn sorted<V: Into<Value>>(map: BTreeMap<String, V>) -> Value {
    Value::Object(map.into_iter().map(|(key, value)| (key, value.into())).collect::<Map<_, _>>())
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
