//! Resource limits.

use nix::unistd::Uid;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::identity;
use super::priority;
use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;
use crate::spec::Limits;

/// Pending signals and timers, of all processes with its uid. 256: a timer for each thread that it may have.
/// The usual limit is thousands of times that, in kernel memory that no other limit counts. At the limit,
/// timers and queued signals fail with EAGAIN.
const SIGNALS: u64 = 256;

/// Bytes in POSIX message queues. They stay in kernel memory until they are removed, and no plugin should
/// need one. Opening one fails with EMFILE.
const MESSAGE_QUEUES: u64 = 0;

/// The highest real-time priority: none, as a real-time thread is preferred to every other for as long as it
/// likes.
const REAL_TIME: u64 = 0;

/// How far it may lower its nice value, which counts down from 20: not at all.
const NICE: u64 = 0;

/// The limits for each process, with the names that `ulimit` and systemd give them.
pub(crate) fn requested(limits: &Limits) -> impl Iterator<Item = (&'static str, Resource, u64)> {
    [
        ("nofile", Resource::Nofile, Some(limits.nofile)),
        ("fsize", Resource::Fsize, Some(limits.fsize_bytes)),
        ("memlock", Resource::Memlock, Some(limits.memlock_bytes)),
        ("core", Resource::Core, Some(limits.core_bytes)),
        ("data", Resource::Data, limits.data_bytes),
        ("stack", Resource::Stack, Some(limits.stack_bytes)),
        ("as", Resource::As, limits.as_bytes),
        ("cpu", Resource::Cpu, limits.cpu_seconds),
        ("msgqueue", Resource::Msgqueue, Some(MESSAGE_QUEUES)),
        ("rtprio", Resource::Rtprio, Some(REAL_TIME)),
        ("nice", Resource::Nice, Some(NICE)),
    ]
    .into_iter()
    .filter_map(|(name, resource, requested_value)| Some((name, resource, requested_value?)))
}

/// The value that would be set: the requested limit, unless our own hard limit is lower.
pub(crate) fn effective(resource: Resource, requested_value: u64) -> u64 {
    getrlimit(resource).maximum.map_or(requested_value, |hard| hard.min(requested_value))
}

/// Sets all limits that apply to each process.
pub(super) fn per_process(plan: &Plan) -> Result<Option<Status>, StepError> {
    let spared = priority::remaining_advantages();
    let mut lowered = Vec::new();
    for (name, resource, requested_value) in requested(&plan.spec.limits) {
        lowered.extend(set(name, resource, requested_value)?);
    }
    Ok(Some(match (status(&lowered), spared) {
        (status, None) => status,
        (Status::StandIn(text), Some(spared)) => Status::StandIn(format!("{text}; {spared}")),
        (_, Some(spared)) => Status::StandIn(spared),
    }))
}

/// Sets how many processes and threads the uid may have, and how many pending signals. Only set if the
/// program is [counted alone](counted_alone): the kernel counts everything that a uid runs, so a limit on a
/// shared uid could be reached by a neighbor or by the user's browser.
pub(super) fn process_count(plan: &Plan) -> Result<Option<Status>, StepError> {
    if !has_own_user_count(plan) {
        return Ok(Some(Status::Missing(no_process_limit())));
    }
    let mut lowered = Vec::new();
    lowered.extend(set("nproc", Resource::Nproc, plan.spec.limits.nproc)?);
    lowered.extend(set("sigpending", Resource::Sigpending, SIGNALS)?);
    Ok(Some(status(&lowered)))
}

/// Whether the kernel counts per-uid resources (processes, pending signals, keyrings) for this program alone:
/// because its uid is used by nothing else, or because it has a user namespace, which counts its uids
/// separately.
pub(super) fn has_own_user_count(plan: &Plan) -> bool {
    identity::assigned(plan).is_ok() || plan.namespaces.get().is_some_and(|held| held.user)
}

/// Why there is no limit on processes.
pub(crate) fn no_process_limit() -> String {
    let why = if Uid::current().is_root() { "the kernel exempts root" } else { "its uid is shared" };
    format!("not limited: {why} (give it a uid of its own)")
}

/// The status summary about limits that had to be lowered.
pub(crate) fn status(lowered: &[String]) -> Status {
    if lowered.is_empty() {
        Status::Enforced
    } else {
        Status::StandIn(format!("{}: the supervisor's own hard limits", lowered.join(", ")))
    }
}

/// Sets a limit hard and soft; returns a text if it is lower than requested.
fn set(name: &str, resource: Resource, requested_value: u64) -> Result<Option<String>, StepError> {
    let given = effective(resource, requested_value);
    let limit = Rlimit { current: Some(given), maximum: Some(given) };
    setrlimit(resource, limit).map_err(|errno| {
        StepError::errno(&format!("cannot set {name} to {given}"), errno.raw_os_error(), "")
    })?;
    Ok((given < requested_value).then(|| format!("{name} {given} instead of {requested_value}")))
}
