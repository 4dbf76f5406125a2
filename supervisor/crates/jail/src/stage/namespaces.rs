//! Namespaces of the program's own.
//!
//! The monitor is born into them, as the first process of the new process numbers: all of them come with the clone,
//! or none. The view of cgroups alone is taken later, since it begins where the monitor is at that moment; and mounts by
//! a stage that was made ahead, since they are to be those of its program's start.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};

use super::request::Plan;
use super::step::StepError;
use crate::report::Status;
use crate::wire::Call;

/// The host name inside: the same for every program, so that it tells nothing about the machine.
const HOST_NAME: &str = "plugin";

/// Namespaces that the stage's next child will live in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// Whether a user namespace is among them: the program's capabilities and limits are its own then, and its
    /// uid is the supervisor's.
    pub(super) user: bool,
}

/// What a report says about a protection that stands on namespaces and has none.
pub(super) fn missing(plan: &Plan) -> Status {
    Status::Missing(match plan.isolation() {
        None => "not asked for".into(),
        Some(_) => "it has no namespaces".into(),
    })
}

/// A uid and a gid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids(u32, u32);

impl Ids {
    /// Our own, before there is a user namespace.
    pub(super) fn own() -> Self {
        Self(geteuid().as_raw(), getegid().as_raw())
    }
}

/// What is to be known of a stage that was born into namespaces.
#[derive(Debug)]
pub(super) struct Birth {
    pub(super) held: Held,
    /// Of who cloned it: inside it has none until they are mapped.
    pub(super) ids: Ids,
    /// Whether mounts are still to be taken.
    pub(super) ahead: bool,
}

/// How a stage came into the world.
#[derive(Debug, Default)]
pub(super) enum Born {
    /// Without namespaces, as none were asked for.
    #[default]
    Plain,
    /// As the first process of these.
    First(Birth),
    /// Without them, for this reason.
    Refused(StepError),
}

/// What to clone into for a call, if it asks for namespaces at all; or why they cannot be had.
pub(super) fn wanted(call: &Call) -> Result<Option<(Held, i32)>, StepError> {
    let Some(wanted) = &call.namespaces else { return Ok(None) };
    let user = !may_administer();
    if user && wanted.own_uid {
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
    flags.set(CloneFlags::CLONE_NEWNET, wanted.network);
    flags.set(CloneFlags::CLONE_NEWUSER, user);
    Ok(Some((Held { user }, flags.bits())))
}

/// Why the kernel gave none.
pub(super) fn refused(error: &io::Error, held: Held) -> StepError {
    StepError::io("cannot have namespaces of its own", error, &advice(held.user))
}

/// Makes those that it was born into its own.
pub(super) fn take(plan: &Plan) -> Result<Option<Status>, StepError> {
    let Birth { held, ids, ahead } = match plan.born.take() {
        Born::Plain => return Ok(Some(missing(plan))),
        Born::First(birth) => birth,
        Born::Refused(error) => return Err(error),
    };
    if held.user {
        map(ids).map_err(|error| {
            // What has unmapped ids is no longer what the mode is about: it cannot become anything sensible.
            StepError::io(
                "cannot map its uid into its user namespace",
                &error,
                "is /proc mounted and writable?",
            )
            .fatal()
        })?;
    }
    if ahead {
        // Final, as it is in all the others already. One is made ahead only where a program was given mounts of its own before.
        unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| {
            StepError::errno("cannot have mounts of its own", errno as i32, &advice(held.user)).fatal()
        })?;
    }
    plan.namespaces.set(held).expect("this step is taken once");
    // A failure leaves it all the others.
    unshare(CloneFlags::CLONE_NEWCGROUP).map_err(|errno| {
        StepError::errno("cannot have a view of cgroups of its own", errno as i32, &advice(held.user))
    })?;
    Ok(Some(Status::Enforced))
}

/// Names the machine as every program's machine is called. In the new namespaces.
pub(super) fn name_host(plan: &Plan) -> Result<Option<Status>, StepError> {
    if plan.namespaces.get().is_some() {
        rustix::system::sethostname(HOST_NAME.as_bytes())
            .map_err(|errno| StepError::errno("cannot set its host name", errno.raw_os_error(), ""))?;
    }
    Ok(None)
}

/// Whether namespaces can be had without one of users.
fn may_administer() -> bool {
    capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Our own uid and gid, as themselves and alone. Who maps a gid must have given up changing groups first.
fn map(Ids(uid, gid): Ids) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// What to do about a refusal; distributions have three switches for it.
fn advice(user: bool) -> String {
    const SWITCHES: &[(&str, &str, &str)] = &[
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ];
    if !user {
        return "is the service's RestrictNamespaces or SystemCallFilter in the way?".into();
    }
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    match SWITCHES.iter().find(|(path, value, _)| is(path, value)) {
        Some((_, _, command)) => {
            format!("run {command}, run the supervisor as root, or set sandbox.mode to best-effort")
        }
        None => {
            "run the supervisor as root, or set sandbox.mode to best-effort; in a container, allow unshare"
                .into()
        }
    }
}
