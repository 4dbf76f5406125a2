//! The state of a plugin at one moment, for lists and status pages.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::Dialect;
use talon_sanitize::{Sanitized, sanitized};

use crate::instances::{summary, total_restarts};
use crate::jail_report::not_enforced;
use crate::lifecycle::{Desired, State};
use crate::plugin_context::PluginContext;
use crate::scripts::Script;

/// The state of a plugin. Text that the plugin wrote is sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The configured name.
    pub name: PluginName,
    /// The name it declared for itself; `None` before its first handshake.
    pub declared_name: Option<Sanitized>,
    /// The state that the operator requested.
    pub desired: Desired,
    /// The observed state. With several instances, the one most useful to a caller counts: the plugin is
    /// ready if one instance is, and failed only if no instance is better.
    pub state: State,
    /// Why it is in this state and, for operators, what to do next. If some instances are in a worse state,
    /// their reasons are appended.
    pub reason: Option<Sanitized>,
    /// Its instances by index.
    pub instances: Vec<InstanceSnapshot>,
    /// How many actions it offers.
    pub actions: usize,
    /// Deaths within the restart window over all instances, as of each one's last event.
    pub deaths: u32,
    /// Actions whose declaration differs from what was approved.
    pub changed_actions: Vec<String>,
    /// Whether the plugin's own texts differ from what was approved.
    pub changed_texts: bool,
    /// Protections that are not in force, or only by a weaker substitute, each with its reason; of the last
    /// start.
    pub not_enforced: Vec<Sanitized>,
    /// Further notes for the operator.
    pub notes: Vec<Sanitized>,
    /// Calls in flight, over all instances.
    pub calls_in_flight: usize,
    /// Calls that wait for an instance to become ready.
    pub calls_waiting: usize,
    /// Processes started for it since it was registered, over all instances.
    pub starts: u64,
    /// How many of them ended other than by a stop, by reason; the reasons are a fixed set of words.
    pub restarts: BTreeMap<&'static str, u64>,
    /// Log lines it wrote since it was registered, including dropped ones.
    pub log_lines: u64,
    /// Log lines dropped by the rate limit.
    pub log_lines_dropped: u64,
    /// Why the last attempt to replace it failed; `None` once one succeeded.
    pub replacement_problem: Option<Sanitized>,
    /// The digest of what was started last, lower-case hex.
    pub digest: Option<String>,
    /// The dialect of its handshake.
    pub dialect: Option<Dialect>,
    /// The scripts that it says it runs, by name; of the first process that says so.
    pub scripts: Vec<Script>,
}

/// The state of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceSnapshot {
    /// From 0.
    pub index: u32,
    /// The observed state.
    pub state: State,
    /// Why it is in this state.
    pub reason: Option<Sanitized>,
    /// The process, if there is one.
    pub pid: Option<u32>,
    /// The uid it runs as, if there is one.
    pub uid: Option<u32>,
    /// The number of its process, counted from the first start.
    pub generation: u64,
    /// Since when it is ready.
    pub ready_since: Option<SystemTime>,
    /// How long the last start took until it was ready.
    pub start_to_ready: Option<Duration>,
    /// Whether another supervisor started the process and handed it over.
    pub taken_over: bool,
    /// Deaths within the restart window.
    pub deaths: u32,
    /// Calls in flight.
    pub calls_in_flight: usize,
}

impl Snapshot {
    /// Only the digest, which every call needs.
    pub(crate) fn digest(common: &PluginContext) -> Option<String> {
        let slots = common.pool.slots.iter().rev();
        slots
            .filter_map(|slot| slot.status.load().last_start.clone())
            .map(|start| start.digest.clone())
            .next()
    }

    pub(crate) fn take(common: &PluginContext) -> Self {
        let pool = &common.pool;
        let views = pool.statuses();
        let speaker = summary(&views);
        let worse = views.iter().enumerate().filter(|(_, view)| view.state != speaker.state);
        let worse = worse.filter_map(|(index, view)| {
            view.reason.as_ref().map(|reason| sanitized!("instance {} is {}: {}", index, view.state, reason))
        });
        let reasons: Vec<Sanitized> = speaker.reason.iter().cloned().chain(worse).collect();
        let capability = common.capability.load();
        let left_out = capability.iter().flat_map(|capability| capability.notes());
        let standing = common.approvals.status();
        let notes = common.declared.note(&common.spec.name).into_iter().chain(left_out);
        let notes = notes.chain(standing.problem.clone()).chain(common.last_good.gone_note());
        let last_start = views.iter().rev().find_map(|view| view.last_start.clone());
        let instances: Vec<InstanceSnapshot> = pool
            .slots
            .iter()
            .zip(&views)
            .map(|(slot, view)| InstanceSnapshot {
                index: slot.index,
                state: view.state,
                reason: view.reason.clone(),
                pid: view.pid,
                uid: view.uid,
                generation: view.generation,
                ready_since: view.ready_since,
                start_to_ready: view.start_to_ready,
                taken_over: view.taken_over,
                deaths: view.deaths,
                calls_in_flight: slot.in_flight(),
            })
            .collect();
        Self {
            name: common.spec.name.clone(),
            declared_name: capability.as_ref().map(|capability| capability.declared_name.sanitized()),
            desired: if views.iter().any(|view| view.desired == Desired::Up) {
                Desired::Up
            } else {
                Desired::Down
            },
            state: speaker.state,
            reason: (!reasons.is_empty()).then(|| Sanitized::join(&reasons, "; ")),
            actions: capability.as_ref().map_or(0, |capability| capability.actions.len()),
            changed_actions: standing.changed.iter().cloned().collect(),
            changed_texts: standing.changed_texts,
            deaths: instances.iter().map(|instance| instance.deaths).sum(),
            not_enforced: last_start.as_ref().map(|start| not_enforced(&start.report)).unwrap_or_default(),
            notes: notes.collect(),
            calls_in_flight: instances.iter().map(|instance| instance.calls_in_flight).sum(),
            calls_waiting: pool.waiting(),
            starts: common.starts_before + views.iter().map(|view| view.starts).sum::<u64>(),
            restarts: total_restarts(&common.restarts_before, &views),
            log_lines: common.logs.lines(),
            log_lines_dropped: common.logs.dropped(),
            replacement_problem: common.replacement_problem.load().as_deref().cloned(),
            digest: last_start.as_ref().map(|start| start.digest.clone()),
            dialect: last_start.as_ref().map(|start| start.dialect),
            scripts: scripts(common),
            instances,
        }
    }
}

fn scripts(common: &PluginContext) -> Vec<Script> {
    let live = common.pool.slots.iter().filter_map(|slot| slot.live.load_full());
    live.map(|live| live.scripts.lock().all()).find(|scripts| !scripts.is_empty()).unwrap_or_default()
}
