//! One status of the supervisor and its plugins, with sanitized texts and optional numbers.
//!
//! Anything that arrives over the socket may quote a plugin, so every text is sanitized here, on arrival: no
//! other module handles untrusted plain strings.

use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use talon_proto::host::{self, GetStatusResponse};
use talon_sanitize::{Raw, Sanitized};

/// One answer to `GetStatus`.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// When it arrived, for computing rates.
    pub(crate) at: Instant,
    /// The same as wall-clock time, in milliseconds since 1970.
    pub(crate) unix_ms: u64,
    pub(crate) supervisor: Supervisor,
    pub(crate) plugins: Vec<Plugin>,
}

/// The supervisor itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Supervisor {
    pub(crate) version: Sanitized,
    pub(crate) pid: u32,
    pub(crate) started_unix_ms: u64,
    pub(crate) state: Sanitized,
    pub(crate) tier: Sanitized,
    pub(crate) taken_over: u32,
    pub(crate) config_problem: Sanitized,
    /// `on`, `off` or `failing`; empty if the supervisor does not report it.
    pub(crate) audit: Sanitized,
    pub(crate) audit_lost: u64,
    /// The state of the service that stores plugins' state.
    pub(crate) state_store: Sanitized,
    pub(crate) usage: Option<Usage>,
    pub(crate) log_lines_dropped: u64,
    pub(crate) refused: usize,
}

/// One plugin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plugin {
    pub(crate) name: Sanitized,
    pub(crate) state: Sanitized,
    pub(crate) desired: Sanitized,
    pub(crate) reason: Sanitized,
    pub(crate) replacement_problem: Sanitized,
    pub(crate) breaker: Sanitized,
    pub(crate) quarantined: bool,
    /// How many of its actions differ from what was approved; its own texts count as one.
    pub(crate) changed: usize,
    pub(crate) actions: u32,
    pub(crate) not_enforced: Vec<Sanitized>,
    pub(crate) in_flight: u32,
    pub(crate) waiting: u32,
    /// Exits since the supervisor started, by reason.
    pub(crate) restarts: Vec<(Sanitized, u64)>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) counters: Counters,
}

/// Counters and latencies of a plugin's calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) calls: u64,
    /// Tool errors, refusals and faults.
    pub(crate) errors: u64,
    pub(crate) log_lines: u64,
    pub(crate) log_lines_dropped: u64,
    /// In microseconds; `None` without recent calls.
    pub(crate) p50_us: Option<u64>,
    pub(crate) p99_us: Option<u64>,
}

/// One process of a plugin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instance {
    pub(crate) index: u32,
    pub(crate) state: Sanitized,
    /// 0 if there is none.
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) generation: u64,
    pub(crate) ready_since_unix_ms: u64,
    pub(crate) in_flight: u32,
    pub(crate) taken_over: bool,
    pub(crate) usage: Option<Usage>,
}

/// Resource usage of processes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_us: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u32,
}

impl Reading {
    /// Converts an answer that has just arrived.
    pub(crate) fn now(status: &GetStatusResponse) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::of(status, Instant::now(), u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn of(status: &GetStatusResponse, at: Instant, unix_ms: u64) -> Self {
        let audit = status.audit.as_ref();
        let supervisor = Supervisor {
            version: neutralized(&status.version),
            pid: status.pid,
            started_unix_ms: status.started_unix_ms,
            state: neutralized(&status.state),
            tier: neutralized(&status.tier),
            taken_over: status.taken_over,
            config_problem: neutralized(&status.config_problem),
            audit: audit.map(|audit| neutralized(&audit.state)).unwrap_or_default(),
            audit_lost: audit.map_or(0, |audit| audit.lost),
            state_store: status
                .state_service
                .as_ref()
                .map(|kept| neutralized(&kept.state))
                .unwrap_or_default(),
            usage: status.usage.as_ref().map(usage),
            log_lines_dropped: status.log_lines_dropped,
            refused: status.refused.len(),
        };
        Self { at, unix_ms, supervisor, plugins: status.plugins.iter().map(plugin).collect() }
    }

    /// The plugin with this name.
    pub(crate) fn plugin(&self, name: &str) -> Option<&Plugin> {
        self.plugins.iter().find(|plugin| plugin.name.as_str() == name)
    }

    /// The number of plugins in each state, the most frequent first.
    pub(crate) fn by_state(&self) -> Vec<(Sanitized, usize)> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for plugin in &self.plugins {
            *counts.entry(plugin.state.as_str()).or_default() += 1;
        }
        let mut counts: Vec<_> =
            counts.into_iter().map(|(state, count)| (Raw::from(state).line(), count)).collect();
        counts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        counts
    }
}

impl Plugin {
    pub(crate) fn ready(&self) -> usize {
        self.instances.iter().filter(|instance| instance.state == "ready").count()
    }

    /// The usage of all its processes; `None` if it is not known for any.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let known: Vec<Usage> = self.instances.iter().filter_map(|instance| instance.usage).collect();
        (!known.is_empty()).then(|| {
            known.iter().fold(Usage::default(), |sum, one| Usage {
                cpu_us: sum.cpu_us.saturating_add(one.cpu_us),
                memory_bytes: sum.memory_bytes.saturating_add(one.memory_bytes),
                processes: sum.processes.saturating_add(one.processes),
            })
        })
    }

    pub(crate) fn deaths(&self) -> u64 {
        self.restarts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

fn plugin(plugin: &host::Plugin) -> Plugin {
    let mut restarts: Vec<_> =
        plugin.restarts.iter().map(|(reason, count)| (neutralized(reason), *count)).collect();
    restarts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    Plugin {
        name: neutralized(&plugin.name),
        state: neutralized(&plugin.state),
        desired: neutralized(&plugin.desired),
        reason: neutralized(&plugin.reason),
        replacement_problem: neutralized(&plugin.replacement_problem),
        breaker: neutralized(&plugin.breaker),
        quarantined: plugin.quarantined,
        changed: plugin.changed_actions.len() + usize::from(plugin.changed_texts),
        actions: plugin.actions,
        not_enforced: plugin.not_enforced.iter().map(neutralized).collect(),
        in_flight: plugin.calls_in_flight,
        waiting: plugin.calls_waiting,
        restarts,
        instances: plugin.instances.iter().map(instance).collect(),
        counters: plugin.counters.as_ref().map(counters).unwrap_or_default(),
    }
}

fn counters(counters: &host::PluginCounters) -> Counters {
    let known = |us: u64| (us > 0).then_some(us);
    Counters {
        calls: counters.calls,
        errors: counters.tool_errors.saturating_add(counters.refusals).saturating_add(counters.faults),
        log_lines: counters.log_lines,
        log_lines_dropped: counters.log_lines_dropped,
        p50_us: known(counters.p50_us),
        p99_us: known(counters.p99_us),
    }
}

fn instance(instance: &host::Instance) -> Instance {
    Instance {
        index: instance.index,
        state: neutralized(&instance.state),
        pid: instance.pid,
        uid: instance.uid,
        generation: instance.generation,
        ready_since_unix_ms: instance.ready_since_unix_ms,
        in_flight: instance.calls_in_flight,
        taken_over: instance.taken_over,
        usage: instance.usage.as_ref().map(usage),
    }
}

fn usage(usage: &host::Usage) -> Usage {
    Usage { cpu_us: usage.cpu_us, memory_bytes: usage.memory_bytes, processes: usage.processes }
}

/// Sanitizes untrusted text to one line.
pub(crate) fn neutralized(text: &String) -> Sanitized {
    Raw::from(text).line()
}
