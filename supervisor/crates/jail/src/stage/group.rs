//! Joining the program's cgroup.

use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::fstatfs;

use super::kernel_memory::{self, SocketBuffers};
use super::memory_watch;
use super::request::Plan;
use super::root::PROC_ADVICE;
use super::step_error::StepError;
use crate::group::WRITING_PROCESS;
use crate::network::Network;
use crate::report::Status;

/// How to get a cgroup.
const CGROUP_ADVICE: &str = "give the supervisor a cgroup: Delegate=yes in its service";

/// The type of cgroup v2 file systems (CGROUP2_SUPER_MAGIC in linux/magic.h).
const CGROUP_FS: u64 = 0x6367_7270;

/// Joins the given cgroup; everything that is forked later is in it as well.
pub(super) fn join(plan: &Plan) -> Result<Option<Status>, StepError> {
    let Some(procs) = &plan.group else { return Ok(None) };
    // The report depends on it, so a file of another kind must not be accepted.
    let kind = fstatfs(procs).map(|fs| fs.f_type as u64);
    if kind != Ok(CGROUP_FS) {
        return Err(StepError::new("what was given is no cgroup.procs (please report this)"));
    }
    rustix::io::write(procs, WRITING_PROCESS.as_bytes()).map_err(|errno| {
        let advice = match errno {
            rustix::io::Errno::NODEV => "it was removed meanwhile; start the plugin again",
            rustix::io::Errno::AGAIN => "its process limit is reached; raise limits.nproc",
            rustix::io::Errno::BUSY => "something made groups below it; remove them",
            _ => "the supervisor and the group must lie in one delegated subtree: set Delegate=yes in the service",
        };
        StepError::errno("cannot join the cgroup", errno.raw_os_error(), advice)
    })?;
    let _ = plan.shares_cpu.set(has_cpu_controller(procs));
    Ok(Some(Status::Enforced))
}

/// Whether the cgroup has the cpu controller: checks for a file beside the given one.
fn has_cpu_controller(procs: &File) -> bool {
    let procs = std::fs::read_link(format!("/proc/self/fd/{}", procs.as_raw_fd()));
    procs.is_ok_and(|procs| procs.with_file_name("cpu.weight").exists())
}

/// The stand-in for a cgroup: a watch on the memory of everything in the pid namespace.
pub(super) fn start_memory_watch(plan: &Plan) -> Result<Option<Status>, StepError> {
    if plan.group.is_some() {
        return Ok(None);
    }
    if plan.namespaces.get().is_none() {
        return Ok(Some(Status::Missing(format!("only each process is limited ({CGROUP_ADVICE})"))));
    }
    let proc = memory_watch::open_proc().map_err(|errno| {
        let advice = format!("{PROC_ADVICE}; or {CGROUP_ADVICE}");
        StepError::errno("cannot watch the memory of its processes", errno.raw_os_error(), &advice)
    })?;
    let uncounted = watch_sockets(plan, &proc);
    plan.watched_proc.set(proc).expect("this step is taken once");
    let text = memory_watch::describe(&plan.spec.limits, uncounted);
    Ok(Some(Status::StandIn(format!("{text} ({CGROUP_ADVICE})"))))
}

/// Has the buffers of its sockets counted, as far as these are in a network namespace of its own. Returns
/// those that are not counted.
fn watch_sockets(plan: &Plan, proc: &OwnedFd) -> Option<&'static str> {
    let network = &plan.isolation()?.network;
    if matches!(network, Network::Host { .. }) {
        return Some("sockets, with network: full,");
    }
    let listeners = plan.isolation()?.listeners.addresses.len() as u64;
    let Ok(sockets) = SocketBuffers::open(proc, listeners) else { return Some("sockets") };
    plan.watched_sockets.set(sockets).expect("this step is taken once");
    let has_tcp = *network == Network::Loopback;
    (has_tcp && kernel_memory::limit_tcp_buffers().is_err())
        .then_some("TCP sockets of its loopback, beyond 416 KiB each,")
}
