//! All metrics: name, kind, labels and meaning. Anything else that is recorded is not shown, so that the sets
//! of labels are closed. `docs/metrics.md` is generated from this list.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// Only increases; starts at 0 with the supervisor, or with the plugin's registration.
    Counter,
    /// A current value.
    Gauge,
    /// Counts per bucket; these are the upper bounds, in the metric's unit.
    Histogram(&'static [f64]),
}

impl MetricKind {
    /// The name of the kind for `# TYPE`.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name with the unit.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// The labels of each sample, in order.
    pub labels: &'static [&'static str],
    /// A description of one sentence.
    pub help: &'static str,
}

/// Buckets for calls: from a cache hit to the longest usual timeout.
const CALLS: &[f64] = &[
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    30.0, 60.0,
];
/// Buckets for layers: most take some microseconds; the plugin's takes as long as the call.
const LAYERS: &[f64] = &[
    0.000_001, 0.000_005, 0.000_01, 0.000_05, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0,
    10.0, 60.0,
];
/// Buckets for process starts: a native program takes some ten milliseconds, a Java program seconds.
const STARTS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    buckets: &'static [f64],
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: MetricKind::Histogram(buckets), labels, help }
}

/// The label of a plugin's configured name.
pub const PLUGIN: &str = "plugin";
const BY_PLUGIN: &[&str] = &[PLUGIN];

/// All metrics, in the order of the docs.
pub const ALL: &[Metric] = &[
    // Calls.
    counter("talon_calls_total", &[PLUGIN, "action", "outcome"], "Calls that ended, by action and outcome"),
    counter("talon_calls_shed_total", BY_PLUGIN, "Calls refused because the plugin's queue was full"),
    counter(
        "talon_extension_calls_total",
        &["role", PLUGIN, "outcome"],
        "Calls of actions that play a role, by role and outcome",
    ),
    gauge("talon_calls_in_flight", BY_PLUGIN, "Calls that run"),
    gauge("talon_calls_waiting", BY_PLUGIN, "Calls that wait for a place in front of the plugin"),
    gauge("talon_breaker_state", &[PLUGIN, "state"], "1 for the state that the plugin's breaker is in"),
    // Events for an operator.
    counter("talon_host_events_total", &["kind"], "Events for an operator that were recorded, by kind"),
    counter(
        "talon_host_events_dropped_total",
        &[],
        "Events that were lost before they were recorded, since they came too fast or the disk did not take them",
    ),
    counter(
        "talon_plugin_events_total",
        &[PLUGIN, "outcome"],
        "Events that the plugin told: recorded, repeated (it sent them again), refused (not within the limits)",
    ),
    counter(
        "talon_plugin_events_acknowledged_total",
        BY_PLUGIN,
        "Events whose end the plugin was told of; it sends others again",
    ),
    counter(
        "talon_plugin_events_dropped_total",
        BY_PLUGIN,
        "Events that the bound of their log removed before the agent read them",
    ),
    gauge(
        "talon_plugin_events_waiting",
        BY_PLUGIN,
        "1 while events wait in the plugin: it tells more than it may, or the disk refuses them",
    ),
    // The guard.
    counter(
        "talon_guard_calls_total",
        &[PLUGIN, "outcome", "reason"],
        "Calls that ended, by outcome and reason",
    ),
    histogram(
        "talon_guard_call_duration_seconds",
        CALLS,
        &[PLUGIN, "outcome"],
        "How long calls took, waiting included",
    ),
    histogram(
        "talon_guard_layer_duration_seconds",
        LAYERS,
        &["layer"],
        "How long a guard layer itself took, in one call of eight, for some minutes after each scrape",
    ),
    counter("talon_guard_bytes_in_total", BY_PLUGIN, "Text before the guard"),
    counter("talon_guard_bytes_out_total", BY_PLUGIN, "Text after the guard, without the envelope"),
    counter("talon_guard_bytes_left_out_total", BY_PLUGIN, "Text that a size limit left out"),
    counter("talon_guard_truncated_total", BY_PLUGIN, "Answers of which a size limit left something out"),
    counter("talon_guard_structured_as_text_total", BY_PLUGIN, "Structured content that did not parse"),
    counter("talon_guard_neutralised_total", &[PLUGIN, "family"], "Control syntax neutralized, by family"),
    counter(
        "talon_guard_neutralised_kinds_total",
        &[PLUGIN, "family", "kind"],
        "Control syntax neutralized, by family and kind",
    ),
    counter(
        "talon_guard_flagged_total",
        &[PLUGIN, "flag"],
        "Answers in which something was noticed, by what",
    ),
    counter("talon_guard_tainted_total", BY_PLUGIN, "Calls whose arguments carried what a plugin had said"),
    counter("talon_guard_paged_total", BY_PLUGIN, "Answers that are kept for reading on"),
    counter("talon_guard_quarantines_total", BY_PLUGIN, "How often the plugin was quarantined"),
    gauge("talon_guard_quarantined", BY_PLUGIN, "1 while the plugin is quarantined"),
    // Plugins.
    gauge("talon_plugin_state", &[PLUGIN, "state"], "1 for the state that the plugin is in"),
    gauge(
        "talon_plugin_instances",
        BY_PLUGIN,
        "Processes that the plugin is to have; 0 if it is not wanted up",
    ),
    gauge("talon_plugin_instances_ready", BY_PLUGIN, "Processes of the plugin that take calls"),
    counter("talon_plugin_starts_total", BY_PLUGIN, "Processes started for the plugin"),
    counter(
        "talon_plugin_restarts_total",
        &[PLUGIN, "reason"],
        "Processes of the plugin that ended otherwise than by a stop, by reason",
    ),
    histogram(
        "talon_plugin_handshake_duration_seconds",
        STARTS,
        BY_PLUGIN,
        "From a process's first instruction to its handshake",
    ),
    histogram(
        "talon_plugin_start_duration_seconds",
        STARTS,
        BY_PLUGIN,
        "From the order to start a process until it is ready",
    ),
    counter(
        "talon_plugin_log_lines_total",
        BY_PLUGIN,
        "Lines that the plugin logged, dropped ones among them",
    ),
    counter(
        "talon_plugin_log_lines_dropped_total",
        BY_PLUGIN,
        "Lines dropped because the plugin logs too much",
    ),
    gauge("talon_plugin_not_enforced", BY_PLUGIN, "Protections that do not hold, or only by a stand-in"),
    counter("talon_plugin_cpu_seconds_total", BY_PLUGIN, "Processor time of the plugin's processes"),
    gauge("talon_plugin_memory_bytes", BY_PLUGIN, "Memory that the plugin's processes use"),
    gauge("talon_plugin_processes", BY_PLUGIN, "Processes and, in a cgroup, threads of the plugin"),
    gauge("talon_plugin_state_used_bytes", BY_PLUGIN, "Key-values that the plugin keeps"),
    gauge("talon_plugin_state_limit_bytes", BY_PLUGIN, "Key-values that the plugin may keep"),
    gauge("talon_plugin_state_used_keys", BY_PLUGIN, "Keys that the plugin keeps"),
    gauge("talon_plugin_state_limit_keys", BY_PLUGIN, "Keys that the plugin may keep"),
    // The supervisor.
    gauge("talon_ready", &[], "1 while /readyz says so"),
    gauge("talon_plugins", &["state"], "Plugins by state"),
    gauge("talon_build_info", &["version", "commit", "rustc"], "1, with what this supervisor was built from"),
    gauge("talon_start_time_seconds", &[], "When the supervisor started, in Unix time"),
    counter("talon_process_cpu_seconds_total", &[], "Processor time of the supervisor itself"),
    gauge("talon_process_memory_bytes", &[], "Resident memory of the supervisor itself"),
    gauge("talon_process_threads", &[], "Threads of the supervisor itself"),
    gauge("talon_process_open_fds", &[], "Open descriptors of the supervisor itself"),
    gauge("talon_process_max_fds", &[], "Descriptors that the supervisor may have open"),
    gauge("talon_state_service_up", &[], "1 while talon-state answers; absent if no state is kept"),
    gauge("talon_state_service_full", &[], "1 while talon-state refuses writes, since there is no room"),
    counter("talon_state_service_restarts_total", &[], "How often talon-state was started again"),
    gauge("talon_agent_up", &[], "1 while talon-agent serves; absent if there is no agent"),
    gauge("talon_agent_full", &[], "1 while talon-agent's database refuses writes, since there is no room"),
    counter("talon_agent_restarts_total", &[], "How often talon-agent was started again"),
    gauge("talon_gateway_up", &[], "1 while talon-gateway serves; absent if there is no gateway"),
    counter("talon_gateway_restarts_total", &[], "How often talon-gateway was started again"),
    gauge("talon_gateway_connections", &[], "Connections of clients that are open at the gateway"),
    counter("talon_gateway_requests_total", &[], "Requests that the gateway answered, since its last start"),
    counter(
        "talon_gateway_refused_total",
        &[],
        "Connections and requests that the gateway refused for a limit, since its last start",
    ),
    gauge(
        "talon_config_loaded_timestamp_seconds",
        &[],
        "When the configuration in force was read, in Unix time",
    ),
    gauge(
        "talon_config_refused",
        &[],
        "1 while the latest configuration is refused and an older one is in force",
    ),
    counter("talon_config_reloads_total", &["outcome"], "Reloads of the configuration: accepted or refused"),
    gauge(
        "talon_taken_over_processes",
        &[],
        "Plugins' processes taken over from the supervisor before this one",
    ),
    counter("talon_watchdog_pings_total", &[], "Signs of life sent to the service manager"),
    counter(
        "talon_watchdog_withheld_total",
        &[],
        "Signs of life not sent, because a task did not answer in time",
    ),
    counter(
        "talon_busy_polls_total",
        &["outcome"],
        "Busy polls for a plugin's answer: found, missed (not within the limit), or contended (another thread needed the core)",
    ),
    gauge(
        "talon_busy_polling_paused",
        &[],
        "1 while busy polling pauses, because other threads need the cores",
    ),
    counter(
        "talon_connections_flooded_total",
        &[],
        "Clients' connections closed, because they sent HTTP/2 control frames without end",
    ),
    counter("talon_audit_records_total", &[], "Records written to the audit log"),
    counter("talon_audit_lost_total", &[], "Calls of which there is no audit record"),
    gauge("talon_audit_failing", &[], "1 while the audit log cannot be written"),
    gauge(
        "talon_audit_damaged",
        &[],
        "1 after a file of the audit log was removed or shortened, until a restart",
    ),
    counter("talon_events_total", &[], "Events sent to subscribers"),
    counter("talon_events_lost_total", &[], "Events that followers lost because they read too slowly"),
    counter(
        "talon_log_lines_dropped_total",
        &[],
        "Lines of the supervisor's own log that were not read in time",
    ),
    counter("talon_scrapes_total", &[], "Answers to /metrics, this one included"),
    gauge("talon_scrape_duration_seconds", &[], "How long it took to gather what this answer says"),
];

/// The metric of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| metric.name == name)
}

/// The list as a Markdown table for `docs/metrics.md`.
#[must_use]
pub fn table() -> String {
    let mut table = String::from("| metric | type | labels | what |\n|---|---|---|---|\n");
    for Metric { name, kind, labels, help } in ALL {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = labels.join(", ");
        table.push_str(&format!("| `{name}` | {} | {labels} | {help} |\n", kind.type_name()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/metrics.md");

    // Promises: METRIC-1
    #[test]
    fn the_docs_list_them_all() {
        let begin = PAGE.find("| metric |").expect("the page has the table");
        let shown: String = PAGE[begin..]
            .lines()
            .take_while(|line| line.starts_with('|'))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(shown, table(), "put this table into docs/metrics.md:\n{}", table());
    }

    #[test]
    fn names_are_as_prometheus_wants_them() {
        let mut names: Vec<&str> = ALL.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len(), "a name stands there twice");
        for Metric { name, kind, labels, help } in ALL {
            assert!(name.starts_with("talon_") && !help.ends_with('.'), "{name}");
            assert_eq!(*kind == MetricKind::Counter, name.ends_with("_total"), "{name}");
            assert!(
                !labels.contains(&"instance") && !labels.contains(&"le"),
                "{name}: a label of Prometheus' own"
            );
            if let MetricKind::Histogram(buckets) = kind {
                assert!(buckets.is_sorted(), "{name}");
            }
        }
    }
}
