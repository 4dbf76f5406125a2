//! What is loaded and what has become of calls, for operators.

use std::sync::Arc;

use serde::Serialize;
use talon_lua_engine::Point;
use talon_sdk::{Context, Json, Tool, ToolError};

use crate::counters::Counts;
use crate::service::Service;

#[derive(Serialize)]
struct Status {
    scripts: Vec<ScriptStatus>,
    problems: Vec<String>,
    counts: Counts,
}

#[derive(Serialize)]
struct ScriptStatus {
    name: String,
    points: Vec<&'static str>,
    /// Of the source that runs; empty while none does.
    sha256: String,
    tests_passed: usize,
    memory_bytes: usize,
    /// Why a newer one does not run.
    failure: Option<String>,
    /// How many versions were loaded.
    loads: u64,
    ended_by_interrupt: u64,
    ended_with_worker: u64,
}

pub(super) fn tool(service: &Arc<Service>) -> Tool {
    let service = Arc::clone(service);
    Tool::new(
        "status",
        "The scripts that are loaded, and what has become of calls.",
        move |(): (), _: Context| {
            let status = status(&service);
            async move { Ok::<_, ToolError>(Json(status)) }
        },
    )
    .read_only()
    .user_only()
}

fn status(service: &Service) -> Status {
    let scripts = service.scripts().all().into_iter().map(|(name, entry)| {
        let loaded = entry.loaded.as_ref();
        ScriptStatus {
            name,
            points: loaded
                .map(|loaded| loaded.definition.points.iter().copied().map(Point::as_str).collect())
                .unwrap_or_default(),
            sha256: loaded.map(|loaded| loaded.sha256.clone()).unwrap_or_default(),
            tests_passed: loaded.map_or(0, |loaded| loaded.tests),
            memory_bytes: loaded
                .map_or(0, |loaded| loaded.definition.memory_bytes.max(loaded.machine.memory_bytes())),
            failure: entry.failure,
            loads: entry.loads,
            ended_by_interrupt: entry.ends.interrupted.get(),
            ended_with_worker: entry.ends.killed.get(),
        }
    });
    Status { scripts: scripts.collect(), problems: service.scripts().problems(), counts: service.counts() }
}
