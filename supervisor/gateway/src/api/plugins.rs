//! Plugins: list, logs, start, stop, restart, reload.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::header::{ACCEPT, HeaderMap};
use serde::{Deserialize, Serialize};
use talon_proto::host::{
    self, LiftQuarantineRequest, ListPluginsRequest, LogsRequest, ReloadPluginRequest, RestartRequest,
    StartRequest, StopRequest,
};
use tonic::Code;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::{require_chat, require_operate};
use crate::app::App;
use crate::identity::Caller;
use crate::input::{Path, Query};
use crate::problem::{Problem, ProblemKind};
use crate::sse;

/// The most log lines of one answer.
const MAX_LINES: u32 = 1000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(logs)).routes(routes!(operate))
}

/// A plugin.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plugin {
    name: String,
    /// discovered, starting, handshaking, ready, unhealthy, draining, stopped, backoff, failed or refused
    state: String,
    /// up or down: what is wanted.
    desired: String,
    /// Why it is where it is, with what to do next.
    reason: String,
    /// How many actions it has.
    actions: u32,
    calls_in_flight: u32,
    calls_waiting: u32,
    /// Its circuit breaker.
    breaker: String,
    quarantined: bool,
    /// Protections that are not in force, each with its reason.
    not_enforced: Vec<String>,
    /// Actions that declare something else than what was approved.
    changed_actions: Vec<String>,
    instances: Vec<Instance>,
    /// How often one of its processes died since the supervisor started.
    deaths: u64,
    /// Why what runs is older than what should; empty if it is not.
    replacement_problem: String,
    /// The scripts that it runs, if it runs scripts (scope operate).
    scripts: Vec<PluginScript>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Counters>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Instance {
    index: u32,
    state: String,
    pid: u32,
    generation: u64,
    calls_in_flight: u32,
    memory_bytes: u64,
    /// Processor time since its start, in microseconds.
    cpu_us: u64,
    /// With those that it started.
    processes: u32,
    /// Since when it is ready, in milliseconds since 1970; 0 if it is not.
    ready_since: u64,
}

/// A script of a plugin that runs scripts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PluginScript {
    name: String,
    /// loaded; outdated: a newer version was refused, and the last good one runs; or failed: none runs
    state: String,
    /// Why the newest version does not run, with line and traceback.
    problem: String,
    /// The functions that are called.
    functions: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Counters {
    calls: u64,
    tool_errors: u64,
    refusals: u64,
    faults: u64,
    truncated: u64,
    tainted: u64,
    /// In microseconds.
    p50_us: u64,
    p99_us: u64,
}

impl From<host::Plugin> for Plugin {
    fn from(plugin: host::Plugin) -> Self {
        let instance = |instance: host::Instance| {
            let usage = instance.usage.unwrap_or_default();
            Instance {
                index: instance.index,
                state: instance.state,
                pid: instance.pid,
                generation: instance.generation,
                calls_in_flight: instance.calls_in_flight,
                memory_bytes: usage.memory_bytes,
                cpu_us: usage.cpu_us,
                processes: usage.processes,
                ready_since: instance.ready_since_unix_ms,
            }
        };
        let script = |script: host::Script| PluginScript {
            name: script.name,
            state: script.state,
            problem: script.problem,
            functions: script.functions,
        };
        let counters = |counters: host::PluginCounters| Counters {
            calls: counters.calls,
            tool_errors: counters.tool_errors,
            refusals: counters.refusals,
            faults: counters.faults,
            truncated: counters.truncated,
            tainted: counters.tainted,
            p50_us: counters.p50_us,
            p99_us: counters.p99_us,
        };
        Self {
            name: plugin.name,
            state: plugin.state,
            desired: plugin.desired,
            reason: plugin.reason,
            actions: plugin.actions,
            calls_in_flight: plugin.calls_in_flight,
            calls_waiting: plugin.calls_waiting,
            breaker: plugin.breaker,
            quarantined: plugin.quarantined,
            not_enforced: plugin.not_enforced,
            changed_actions: plugin.changed_actions,
            instances: plugin.instances.into_iter().map(instance).collect(),
            deaths: plugin.restarts.values().sum(),
            replacement_problem: plugin.replacement_problem,
            scripts: plugin.scripts.into_iter().map(script).collect(),
            counters: plugin.counters.map(counters),
        }
    }
}

pub(super) fn no_plugin(status: tonic::Status) -> Problem {
    match status.code() {
        Code::NotFound => {
            Problem::new(ProblemKind::NotFound, "there is no such plugin: GET /api/plugins lists them")
        }
        _ => status.into(),
    }
}

/// The plugins that the caller may see.
#[utoipa::path(get, path = "/api/plugins", tag = "plugins", responses((status = OK, body = Page<Plugin>)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Page<Plugin>>, Problem> {
    require_chat(&caller)?;
    let answer = app.backends.host(&caller).list_plugins(ListPluginsRequest {}).await?.into_inner();
    Ok(Json(Page::new(answer.plugins.into_iter().map(Plugin::from), String::new())))
}

/// A line of a plugin's log.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LogLine {
    /// In milliseconds since 1970.
    timestamp: u64,
    instance: u32,
    /// trace, debug, info, warn or error
    level: String,
    /// stdout, stderr, stdio or talon
    stream: String,
    /// Control characters are made visible.
    text: String,
}

impl From<host::LogLine> for LogLine {
    fn from(line: host::LogLine) -> Self {
        Self {
            timestamp: line.unix_ms,
            instance: line.instance,
            level: line.level,
            stream: line.stream,
            text: line.text,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct LogQuery {
    /// How many of the latest lines; up to 1000. Without it, 100.
    tail: Option<u32>,
}

/// The latest lines of a plugin's log (scope operate); with `Accept: text/event-stream` also those that come.
#[utoipa::path(
    get, path = "/api/plugins/{name}/logs", tag = "plugins", params(("name" = String, Path), LogQuery),
    responses((status = OK, content((Page<LogLine> = "application/json"), (LogLine = "text/event-stream"))))
)]
async fn logs(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    require_operate(&caller)?;
    let tail = query.tail.unwrap_or(100).clamp(1, MAX_LINES);
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let follow = accepts.contains("text/event-stream");
    let request = LogsRequest { plugin: name, follow, tail };
    let mut lines = app.backends.host(&caller).logs(request).await.map_err(no_plugin)?.into_inner();
    if follow {
        let texts = stream::unfold(lines, |mut lines| async move {
            let line = lines.message().await.ok()??;
            let text = serde_json::to_string(&LogLine::from(line)).expect("it is texts and numbers");
            Some((text, lines))
        });
        return Ok(sse::texts(&app, &caller, "log.line", texts).into_response());
    }
    let mut kept = Vec::new();
    // It ends by itself: nothing is followed, and it has `tail` lines at most.
    while let Some(line) = lines.message().await? {
        kept.push(LogLine::from(line));
    }
    Ok(Json(Page::new(kept, String::new())).into_response())
}

/// What is done with a plugin.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    Start,
    Stop,
    Restart,
    /// Replaces its processes by new ones, without losing a call.
    Reload,
    /// Ends its quarantine; its processes stay.
    #[serde(rename = "lift-quarantine")]
    LiftQuarantine,
}

/// Starts, stops, restarts or reloads a plugin, or ends its quarantine (scope operate).
#[utoipa::path(
    post, path = "/api/plugins/{name}/{operation}", tag = "plugins",
    params(("name" = String, Path), ("operation" = Operation, Path)), responses((status = OK, body = Plugin))
)]
async fn operate(
    State(app): State<App>,
    caller: Caller,
    Path((name, operation)): Path<(String, Operation)>,
) -> Result<Json<Plugin>, Problem> {
    require_operate(&caller)?;
    let mut host = app.backends.host(&caller);
    let plugin = match operation {
        Operation::Start => host.start(StartRequest { name }).await.map(|answer| answer.into_inner().plugin),
        Operation::Stop => host.stop(StopRequest { name }).await.map(|answer| answer.into_inner().plugin),
        Operation::Restart => {
            host.restart(RestartRequest { name }).await.map(|answer| answer.into_inner().plugin)
        }
        Operation::Reload => {
            host.reload_plugin(ReloadPluginRequest { name }).await.map(|answer| answer.into_inner().plugin)
        }
        Operation::LiftQuarantine => host
            .lift_quarantine(LiftQuarantineRequest { name })
            .await
            .map(|answer| answer.into_inner().plugin),
    };
    Ok(Json(plugin.map_err(no_plugin)?.unwrap_or_default().into()))
}
