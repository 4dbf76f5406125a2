//! Test data: a supervisor with six plugins, read twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use talon_proto::host::{
    AuditStatus, GetStatusResponse, Instance, Plugin, PluginCounters, StateStatus, Usage,
};

use crate::reading::Reading;

/// 2026-05-04T10:00:00Z.
pub(crate) const NOON_MS: u64 = 1_777_888_800_000;

/// Two readings, two seconds apart.
pub(crate) fn two_readings() -> (Reading, Reading) {
    let at = Instant::now();
    let later = at + Duration::from_secs(2);
    (Reading::of(&status(0), at, NOON_MS), Reading::of(&status(1), later, NOON_MS + 2000))
}

/// The supervisor's status at one of the two times.
pub(crate) fn status(moment: u64) -> GetStatusResponse {
    let ready = |name: &str, pid: u32, calls: u64, cpu_us: u64| Plugin {
        name: name.to_owned(),
        state: "ready".to_owned(),
        desired: "up".to_owned(),
        breaker: "closed".to_owned(),
        actions: 3,
        instances: vec![Instance {
            index: 1,
            state: "ready".to_owned(),
            pid,
            generation: 1,
            uid: 60_001,
            ready_since_unix_ms: NOON_MS - 3_600_000,
            start_to_ready_us: 41_000,
            usage: Some(Usage {
                cpu_us: 9_000_000 + moment * cpu_us,
                memory_bytes: u64::from(pid) << 14,
                processes: 2,
                source: "cgroup".to_owned(),
            }),
            ..Instance::default()
        }],
        counters: Some(PluginCounters {
            calls: 1000 + moment * calls,
            tool_errors: 4,
            p50_us: 1_800,
            p99_us: 12_300,
            log_lines: 10 + moment,
            ..PluginCounters::default()
        }),
        ..Plugin::default()
    };
    let mut search = ready("code-search", 4301, 241, 500_000);
    search.calls_in_flight = 3;
    search.calls_waiting = 1;
    if let Some(counters) = &mut search.counters {
        counters.faults = moment * 2;
    }
    search.restarts = BTreeMap::from([("exited".to_owned(), 2), ("health".to_owned(), 1)]);
    let mut csv = ready("csv-query", 4302, 2, 20_000);
    if let Some(counters) = &mut csv.counters {
        (counters.p50_us, counters.p99_us) = (240_000, 1_900_000);
        counters.log_lines_dropped = 512;
    }
    csv.not_enforced =
        vec!["memory-group: only a stand-in: this machine gives no memory controller".to_owned()];
    let jira = Plugin {
        name: "jira".to_owned(),
        state: "failed".to_owned(),
        desired: "up".to_owned(),
        reason: "handshake timeout: it said nothing within 10s; see `talon plugin logs jira`".to_owned(),
        breaker: "closed".to_owned(),
        instances: vec![Instance { index: 1, state: "failed".to_owned(), ..Instance::default() }],
        ..Plugin::default()
    };
    let fetch = Plugin {
        name: "web-fetch".to_owned(),
        state: "backoff".to_owned(),
        desired: "up".to_owned(),
        reason: "exited with code 3; started again in 4s".to_owned(),
        breaker: "open".to_owned(),
        actions: 1,
        instances: vec![Instance { index: 1, state: "backoff".to_owned(), ..Instance::default() }],
        counters: Some(PluginCounters { calls: 77, faults: 12, ..PluginCounters::default() }),
        ..Plugin::default()
    };
    GetStatusResponse {
        version: "0.1.0".to_owned(),
        pid: 4242,
        started_unix_ms: NOON_MS - 11_040_000,
        state: "serving".to_owned(),
        tier: "full".to_owned(),
        plugins: vec![
            search,
            csv,
            ready("hello", 4303, 18, 10_000),
            jira,
            ready("notes-of-everybody-in-the-office", 4305, 0, 0),
            fetch,
        ],
        state_service: Some(StateStatus { state: "serving".to_owned(), ..StateStatus::default() }),
        audit: Some(AuditStatus { state: "on".to_owned(), ..AuditStatus::default() }),
        usage: Some(Usage {
            cpu_us: 2_000_000 + moment * 60_000,
            memory_bytes: 41 << 20,
            processes: 1,
            source: "processes".to_owned(),
        }),
        ..GetStatusResponse::default()
    }
}
