//! Collects the metrics at a scrape: existing counters, and values that have to be read.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talon_guard::trace::UNKNOWN_PLUGIN_LABEL;
use talon_plugin::{Desired, State};
use talon_plugin_config::name::RESERVED_NAME;
use talon_wire::BusyPollCounts;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::agent::AgentMetrics;
use super::metrics::page::MetricsPage;
use super::sources::Sources;
use super::state_usage::{StateUsage, UsageByPlugin};
use super::{build, ready};
use crate::dispatch::OUTCOMES;
use crate::service::ManagedServiceState;
use crate::usage::{SupervisorUsage, UsageReading};

/// For how long after a scrape the guard's layers are measured: longer than any usual scrape interval.
const MEASURED_FOR: Duration = Duration::from_secs(10 * 60);

/// Renders pages, one at a time: concurrent scrapes wait, so that they do not multiply the work.
pub(super) struct Collector {
    sources: Sources,
    quotas: StateUsage,
    agent: AgentMetrics,
    scrapes: Mutex<u64>,
}

impl Collector {
    pub(super) fn new(sources: Sources, quotas: StateUsage, agent: AgentMetrics) -> Self {
        Self { sources, quotas, agent, scrapes: Mutex::new(0) }
    }

    pub(super) async fn collect(&self) -> String {
        let mut scrapes = self.scrapes.lock().await;
        *scrapes += 1;
        let began = Instant::now();
        let Sources { registry, dispatcher, series, info: about } = &self.sources;
        dispatcher.measure_for(MEASURED_FOR);
        let (used, kept, of_agent) = tokio::join!(about.usages.read(), self.quotas.read(), self.agent.read());
        series.retain_plugins(|name| {
            name == UNKNOWN_PLUGIN_LABEL || name == RESERVED_NAME || registry.get(name).is_some()
        });
        let mut page = MetricsPage::new();
        series.write_to(&mut page);
        self.calls(&mut page);
        self.plugins(&mut page, &used, kept.as_deref());
        self.supervisor(&mut page, &used.supervisor);
        page.sample("talon_scrapes_total", &[], *scrapes);
        page.sample("talon_scrape_duration_seconds", &[], began.elapsed().as_secs_f64());
        // The agent's metrics have a separate prefix, so that no metric appears twice.
        page.finish() + &of_agent
    }

    fn calls(&self, page: &mut MetricsPage) {
        for numbers in self.sources.dispatcher.statistics() {
            let plugin = numbers.name.as_str();
            for (action, ends) in &numbers.actions {
                for (outcome, count) in OUTCOMES.iter().zip(ends).filter(|(_, count)| **count > 0) {
                    page.sample("talon_calls_total", &[plugin, action, outcome], count);
                }
            }
            let Some(gauge) = &numbers.gauge else { continue };
            page.sample("talon_calls_shed_total", &[plugin], numbers.shed);
            page.sample("talon_calls_in_flight", &[plugin], gauge.in_flight);
            page.sample("talon_calls_waiting", &[plugin], gauge.waiting);
            page.sample("talon_breaker_state", &[plugin, gauge.breaker], 1);
        }
    }

    fn plugins(&self, page: &mut MetricsPage, used: &UsageReading, kept: Option<&UsageByPlugin>) {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for plugin in self.sources.registry.list() {
            let snapshot = plugin.snapshot();
            let name = [snapshot.name.as_str()];
            let state = snapshot.state.as_str();
            *states.entry(state).or_default() += 1;
            page.sample("talon_plugin_state", &[name[0], state], 1);
            let wanted = if snapshot.desired == Desired::Up { snapshot.instances.len() } else { 0 };
            let ready = snapshot.instances.iter().filter(|instance| instance.state == State::Ready).count();
            page.sample("talon_plugin_instances", &name, wanted);
            page.sample("talon_plugin_instances_ready", &name, ready);
            page.sample("talon_plugin_starts_total", &name, snapshot.starts);
            for (reason, count) in &snapshot.restarts {
                page.sample("talon_plugin_restarts_total", &[name[0], reason], count);
            }
            page.sample("talon_plugin_log_lines_total", &name, snapshot.log_lines);
            page.sample("talon_plugin_log_lines_dropped_total", &name, snapshot.log_lines_dropped);
            if self.sources.dispatcher.config().event_limits(name[0]).is_some() {
                let told = plugin.event_counters();
                for (outcome, count) in [
                    ("recorded", told.recorded()),
                    ("repeated", told.repeated()),
                    ("refused", told.refused()),
                ] {
                    page.sample("talon_plugin_events_total", &[name[0], outcome], count);
                }
                page.sample("talon_plugin_events_acknowledged_total", &name, told.acknowledged());
                let dropped = self.sources.info.recorder.plugins().dropped(name[0]);
                page.sample("talon_plugin_events_dropped_total", &name, dropped);
                page.sample("talon_plugin_events_waiting", &name, u8::from(told.is_waiting()));
            }
            if let Some((cpu, memory, processes)) = used.plugin(name[0]) {
                page.sample("talon_plugin_cpu_seconds_total", &name, cpu.as_secs_f64());
                page.sample("talon_plugin_memory_bytes", &name, memory);
                page.sample("talon_plugin_processes", &name, processes);
            }
            if let (Some(kept), Some(keeper)) = (kept, &self.sources.info.state) {
                let (bytes, keys) = kept.get(name[0]).copied().unwrap_or_default();
                let quota = keeper.quota(&snapshot.name);
                page.sample("talon_plugin_state_used_bytes", &name, bytes);
                page.sample("talon_plugin_state_limit_bytes", &name, quota.bytes.get());
                page.sample("talon_plugin_state_used_keys", &name, keys);
                page.sample("talon_plugin_state_limit_keys", &name, quota.keys);
            }
        }
        for (state, count) in states {
            page.sample("talon_plugins", &[state], count);
        }
    }

    fn supervisor(&self, page: &mut MetricsPage, own: &SupervisorUsage) {
        let Sources { info: about, registry, .. } = &self.sources;
        page.sample("talon_ready", &[], u8::from(ready::readiness(&self.sources).ready));
        page.sample("talon_build_info", &[build::VERSION, build::COMMIT, build::RUSTC], 1);
        page.sample("talon_start_time_seconds", &[], unix_seconds(about.started));
        page.sample("talon_process_cpu_seconds_total", &[], own.cpu.as_secs_f64());
        page.sample("talon_process_memory_bytes", &[], own.memory_bytes);
        page.sample("talon_process_threads", &[], own.threads);
        page.sample("talon_process_open_fds", &[], own.open_fds);
        page.sample("talon_process_max_fds", &[], own.max_fds);
        if let Some(keeper) = &about.state {
            let status = keeper.status();
            page.sample("talon_state_service_up", &[], u8::from(status.state.answers()));
            let full = status.state == ManagedServiceState::Full;
            page.sample("talon_state_service_full", &[], u8::from(full));
            page.sample("talon_state_service_restarts_total", &[], status.restarts);
        }
        if let Some(keeper) = &about.agent {
            let status = keeper.status();
            page.sample("talon_agent_up", &[], u8::from(status.state.answers()));
            page.sample("talon_agent_full", &[], u8::from(status.state == ManagedServiceState::Full));
            page.sample("talon_agent_restarts_total", &[], status.restarts);
        }
        if let Some(keeper) = &about.gateway {
            let status = keeper.status();
            page.sample("talon_gateway_up", &[], u8::from(status.state.answers()));
            page.sample("talon_gateway_restarts_total", &[], status.restarts);
            // Until its first sign of life it has served nobody.
            let report = keeper.report().unwrap_or_default();
            page.sample("talon_gateway_connections", &[], report.connections);
            page.sample("talon_gateway_requests_total", &[], report.requests);
            page.sample("talon_gateway_refused_total", &[], report.refused);
        }
        let audit = about.audit.status();
        page.sample("talon_audit_records_total", &[], audit.records);
        page.sample("talon_audit_lost_total", &[], audit.lost);
        page.sample("talon_audit_failing", &[], u8::from(audit.state == "failing"));
        page.sample("talon_audit_damaged", &[], u8::from(about.audit.is_damaged()));
        page.sample("talon_events_total", &[], registry.events().emitted());
        page.sample("talon_events_lost_total", &[], registry.events().lost());
        let polls = BusyPollCounts::of_process();
        for (outcome, count) in
            [("found", polls.found), ("missed", polls.missed), ("contended", polls.contended)]
        {
            page.sample("talon_busy_polls_total", &[outcome], count);
        }
        page.sample("talon_busy_polling_paused", &[], u8::from(polls.paused));
        page.sample("talon_log_lines_dropped_total", &[], talon_telemetry::dropped());
    }
}

fn unix_seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
