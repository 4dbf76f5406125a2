//! The program's own namespaces.
//!
//! The monitor is cloned into them, as the first process of the new pid namespace: it gets all of them with
//! the clone, or none. Only the cgroup namespace is made later, since its root is the monitor's cgroup at
//! that moment. A standby stage also makes its mount namespace later, to get the mounts at the start of its
//! program.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

use super::origin::{HeldNamespaces, NamespaceOrigin, StageOrigin, UserIds};
use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;
use crate::userns_switch::disabled_userns_switch;
use crate::wire::StageRequest;

/// The host name inside: the same for every program, so that it tells nothing about the machine.
const HOST_NAME: &str = "plugin";

/// The report's text for a protection that needs namespaces and has none.
pub(super) fn missing(plan: &Plan) -> Status {
    Status::Missing(match plan.isolation() {
        None => "not asked for".into(),
        Some(_) => "it has no namespaces".into(),
    })
}

/// The namespaces and clone flags for a request, if it asks for namespaces; or why they cannot be made.
pub(super) fn requested(call: &StageRequest) -> Result<Option<(HeldNamespaces, i32)>, StepError> {
    let Some(namespaces) = &call.namespaces else { return Ok(None) };
    let user = !has_sys_admin();
    if user && namespaces.own_uid {
        return Err(StepError::new(
            "a uid of its own and namespaces together need CAP_SYS_ADMIN (add it to the service's capabilities, \
             or run the supervisor as an ordinary user)",
        ));
    }
    if user && geteuid().is_root() {
        return Err(StepError::new(
            "root without CAP_SYS_ADMIN cannot have them (add it to the service's capabilities, or run the \
             supervisor as an ordinary user)",
        ));
    }
    let mut flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    flags.set(CloneFlags::CLONE_NEWNS, !call.ahead);
    flags.set(CloneFlags::CLONE_NEWNET, namespaces.network);
    flags.set(CloneFlags::CLONE_NEWUSER, user);
    Ok(Some((HeldNamespaces { user }, flags.bits())))
}

/// The error when the kernel refused the namespaces.
pub(super) fn refused(error: &io::Error, held: HeldNamespaces) -> StepError {
    StepError::io("cannot have namespaces of its own", error, &advice(held.user))
}

/// Completes the namespaces that the stage was cloned into.
pub(super) fn finish(plan: &Plan) -> Result<Option<Status>, StepError> {
    let NamespaceOrigin { namespaces: held, ids, ahead } = match plan.origin.take() {
        StageOrigin::HostNamespaces => return Ok(Some(missing(plan))),
        StageOrigin::NewNamespaces(birth) => birth,
        StageOrigin::Refused(error) => return Err(error),
    };
    if held.user {
        map_ids(ids).map_err(|error| {
            // Fatal in every mode: a process with unmapped ids cannot run a program.
            StepError::io(
                "cannot map its uid into its user namespace",
                &error,
                "is /proc mounted and writable?",
            )
            .fatal()
        })?;
    }
    if ahead {
        // Fatal, since the stage already is in all the other namespaces. A standby stage is only made after a
        // program got mounts.
        unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| {
            StepError::errno("cannot have mounts of its own", errno as i32, &advice(held.user)).fatal()
        })?;
    }
    plan.namespaces.set(held).expect("this step is taken once");
    // If this fails, it keeps the other namespaces.
    unshare(CloneFlags::CLONE_NEWCGROUP).map_err(|errno| {
        StepError::errno("cannot have a view of cgroups of its own", errno as i32, &advice(held.user))
    })?;
    Ok(Some(Status::Enforced))
}

/// Sets the host name, which is the same for every program. Runs in the new namespaces.
pub(super) fn set_host_name(plan: &Plan) -> Result<Option<Status>, StepError> {
    if plan.namespaces.get().is_some() {
        rustix::system::sethostname(HOST_NAME.as_bytes())
            .map_err(|errno| StepError::errno("cannot set its host name", errno.raw_os_error(), ""))?;
    }
    Ok(None)
}

/// Whether namespaces can be made without a user namespace.
fn has_sys_admin() -> bool {
    capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Maps only our own uid and gid, to themselves. Before a gid can be mapped, changing groups must be denied.
fn map_ids(UserIds(uid, gid): UserIds) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// What to do about a refusal.
fn advice(user: bool) -> String {
    if !user {
        return "is the service's RestrictNamespaces or SystemCallFilter in the way?".into();
    }
    match disabled_userns_switch(&|path| fs::read_to_string(path).ok()) {
        Some(command) => {
            format!("run {command}, run the supervisor as root, or set sandbox.mode to best-effort")
        }
        None => {
            "run the supervisor as root, or set sandbox.mode to best-effort; in a container, allow unshare"
                .into()
        }
    }
}
