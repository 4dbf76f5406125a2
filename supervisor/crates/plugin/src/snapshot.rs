//! What is known of a plugin at one moment, for lists and status pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use talon_jail::Status;
use talon_sanitize::{Raw, Sanitized, inert};

use crate::common::Common;
use crate::instances::{View, summary};
use crate::lifecycle::{Desired, State};
use crate::name::PluginName;
use crate::spec::Dialect;

/// What is known of a plugin. What it wrote itself stands here sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The configured name.
    pub name: PluginName,
    /// The name it declared for itself; `None` before its first handshake.
    pub declared_name: Option<Sanitized>,
    /// What the operator wants.
    pub desired: Desired,
    /// What is observed. Of several instances the one that is most useful to a caller speaks for the plugin:
    /// it is ready if one instance is, and failed only if none is any better.
    pub state: State,
    /// Why it is there, and for operators what to do next. When some instances are worse off than the state
    /// says, their reasons stand here.
    pub reason: Option<Sanitized>,
    /// Its instances by index.
    pub instances: Vec<InstanceSnapshot>,
    /// How many actions it offers.
    pub actions: usize,
    /// Deaths within the restart window over all instances, as of each one's last event.
    pub deaths: u32,
    /// Actions that declare something else than what was approved.
    pub changed_actions: Vec<String>,
    /// What it says of itself is not what was approved.
    pub changed_texts: bool,
    /// Protections that are not in force, or only by a weaker stand-in, each with its reason; of the last start.
    pub not_enforced: Vec<Sanitized>,
    /// What else an operator should know.
    pub notes: Vec<Sanitized>,
    /// Calls in flight, over all instances.
    pub calls_in_flight: usize,
    /// Calls that wait for an instance to become ready.
    pub calls_waiting: usize,
    /// Processes started for it since it was registered, over all instances.
    pub starts: u64,
    /// How often one of them ended otherwise than by a stop, by reason: a few words of our own.
    pub restarts: BTreeMap<&'static str, u64>,
    /// Log lines it wrote since it was registered, lost ones among them.
    pub log_lines: u64,
    /// Log lines lost because it logged more than it may.
    pub log_lines_dropped: u64,
    /// Why the last attempt to replace it by something newer failed; `None` once one succeeded.
    pub replacement_problem: Option<Sanitized>,
    /// The digest of what was started last, lower-case hex.
    pub digest: Option<String>,
    /// The dialect it shook hands in.
    pub dialect: Option<Dialect>,
}

/// What is known of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceSnapshot {
    /// From 0.
    pub index: u32,
    /// What is observed.
    pub state: State,
    /// Why it is there.
    pub reason: Option<Sanitized>,
    /// The process, if there is one.
    pub pid: Option<u32>,
    /// The uid it runs as, if there is one.
    pub uid: Option<u32>,
    /// Counts its processes.
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
    /// The digest alone, which every call asks for.
    pub(crate) fn digest(common: &Common) -> Option<String> {
        let slots = common.pool.slots.iter().rev();
        slots.filter_map(|slot| slot.view.load().last_start.clone()).map(|start| start.digest.clone()).next()
    }

    pub(crate) fn take(common: &Common) -> Self {
        let pool = &common.pool;
        let views = pool.views();
        let speaker = summary(&views);
        let worse = views.iter().enumerate().filter(|(_, view)| view.state != speaker.state);
        let worse = worse.filter_map(|(index, view)| {
            view.reason.as_ref().map(|reason| inert!("instance {} is {}: {}", index, view.state, reason))
        });
        let reasons: Vec<Sanitized> = speaker.reason.iter().cloned().chain(worse).collect();
        let capability = common.capability.load();
        let left_out = capability.iter().flat_map(|capability| capability.left_out.iter().cloned());
        let standing = common.approvals.standing();
        let notes = common.declared.note(&common.spec.name).into_iter().chain(left_out);
        let notes = notes.chain(standing.problem.clone());
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
            declared_name: capability.as_ref().map(|capability| capability.declared_name.shown()),
            desired: if views.iter().any(|view| view.desired == Desired::Up) {
                Desired::Up
            } else {
                Desired::Down
            },
            state: speaker.state,
            reason: (!reasons.is_empty()).then(|| Sanitized::joined(&reasons, "; ")),
            actions: capability.as_ref().map_or(0, |capability| capability.actions.len()),
            changed_actions: standing.changed.iter().cloned().collect(),
            changed_texts: standing.changed_texts,
            deaths: instances.iter().map(|instance| instance.deaths).sum(),
            not_enforced: last_start.as_ref().map(|start| not_enforced(&start.report)).unwrap_or_default(),
            notes: notes.collect(),
            calls_in_flight: instances.iter().map(|instance| instance.calls_in_flight).sum(),
            calls_waiting: pool.waiting(),
            starts: common.starts_before + views.iter().map(|view| view.starts).sum::<u64>(),
            restarts: restarts(&common.restarts_before, &views),
            log_lines: common.logs.lines(),
            log_lines_dropped: common.logs.dropped(),
            replacement_problem: common.replacement_problem.load().as_deref().cloned(),
            digest: last_start.as_ref().map(|start| start.digest.clone()),
            dialect: last_start.as_ref().map(|start| start.dialect),
            instances,
        }
    }
}

/// How processes ended, those of earlier pools among them.
pub(crate) fn restarts(
    before: &BTreeMap<&'static str, u64>,
    views: &[Arc<View>],
) -> BTreeMap<&'static str, u64> {
    let mut sums = before.clone();
    for (reason, count) in views.iter().flat_map(|view| &view.restarts) {
        *sums.entry(*reason).or_default() += count;
    }
    sums
}

/// The protections that do not hold, or only by a stand-in, each with its reason.
pub(crate) fn not_enforced(report: &talon_jail::Report) -> Vec<Sanitized> {
    let lines = report.iter().filter_map(|protection| match &protection.status {
        Status::Enforced => None,
        Status::StandIn(how) => Some(format!("{}: only a stand-in: {how}", protection.name)),
        Status::Missing(why) => Some(format!("{}: {why}", protection.name)),
    });
    lines.map(|line| Raw::from(line).line()).collect()
}
