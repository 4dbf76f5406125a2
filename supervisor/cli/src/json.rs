//! Results as JSON. The keys are those of `proto/talon/host/v1/host.proto` and are stable.
//!
//! [`fields`] is what `serde` derives for a message. The functions below are for messages whose keys are
//! printed in another order than the contract has them, and for those with a value that a program reads
//! better otherwise: a word for a number, `null` for a process that is not there.

use serde::Serialize;
use serde_json::{Value, json};
use talon_proto::host::{
    ExecuteResponse, GetPluginResponse, GetStatusResponse, GuardReport, Instance, Outcome, Plugin,
    PluginCounters,
};

/// The key of the guarded block, which is printed unchanged.
pub(crate) const BLOCK: &str = "block";

/// The fields of a message, in the order of the contract.
pub(crate) fn fields(message: &impl Serialize) -> Value {
    serde_json::to_value(message)
        .expect("the keys of a message are strings, and its numbers have no other form")
}

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
        "report": report(&answer.report.clone().unwrap_or_default()),
    })
}

pub(crate) fn report(report: &GuardReport) -> Value {
    json!({
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "bytes_left_out": report.bytes_left_out,
        "truncated": report.truncated,
        "neutralised": report.neutralised,
        "kinds": report.kinds,
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
        "restarts": plugin.restarts,
        "scripts": plugin.scripts,
        "events": plugin.events.as_ref().map(fields),
        "counters": counters(&plugin.counters.clone().unwrap_or_default()),
    })
}

fn instance(instance: &Instance) -> Value {
    let mut value = fields(instance);
    // `null` instead of pid 0: in a script, `kill 0` would kill the script's own process group.
    if instance.pid == 0 {
        value["pid"] = Value::Null;
        value["uid"] = Value::Null;
    }
    value
}

fn counters(counters: &PluginCounters) -> Value {
    json!({
        "calls": counters.calls,
        "tool_errors": counters.tool_errors,
        "refusals": counters.refusals,
        "faults": counters.faults,
        "neutralised": counters.neutralised,
        "truncated": counters.truncated,
        "tainted": counters.tainted,
        "flagged": counters.flagged,
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
        "capabilities": response.capabilities,
        "settings": response.settings,
        "declaration_digests": response.declaration_digests,
        "extensions": response.extensions,
    })
}

pub(crate) fn status(status: &GetStatusResponse) -> Value {
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
        "refused": status.refused,
        "you": status.you,
        "state_service": status.state_service,
        "agent": status.agent,
        "gateway": status.gateway,
        "taken_over": status.taken_over,
        "audit": status.audit,
        "usage": status.usage,
        "tier": status.tier,
        "log_lines_dropped": status.log_lines_dropped,
        "extensions": status.extensions,
        "plugin_roles": status.plugin_roles,
    })
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
