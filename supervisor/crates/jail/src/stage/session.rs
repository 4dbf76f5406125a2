//! The program's process group, and its ties to the monitor.

use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Signal, getpid, getppid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setpgid, umask,
};
use rustix::thread::set_no_new_privs;

use super::identity;
use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;

/// Makes orphans of the program's tree our children, however they detached themselves.
pub(super) fn adopt_orphans(_: &Plan) -> Result<Option<Status>, StepError> {
    set_child_subreaper(Some(getpid()))
        .map_err(|errno| StepError::errno("cannot adopt orphans", errno.raw_os_error(), ""))?;
    Ok(None)
}

/// Forbids other processes of our uid to trace us and to read our memory.
pub(super) fn forbid_tracing(_: &Plan) -> Result<Option<Status>, StepError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| StepError::errno("cannot forbid tracing", errno.raw_os_error(), ""))?;
    Ok(None)
}

/// Not a session: a session's leader can acquire a terminal by opening it.
pub(super) fn new_process_group(_: &Plan) -> Result<Option<Status>, StepError> {
    setpgid(None, None)
        .map_err(|errno| StepError::errno("cannot lead a process group", errno.raw_os_error(), ""))?;
    Ok(None)
}

/// Requests SIGKILL for us when the monitor dies. Also notices a monitor that has died before.
pub(super) fn die_with_monitor(plan: &Plan) -> Result<Option<Status>, StepError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| StepError::errno("cannot die with the monitor", errno.raw_os_error(), ""))?;
    if getppid() == Some(plan.monitor) {
        Ok(None)
    } else {
        Err(StepError::new("the monitor has ended (start the plugin again)"))
    }
}

/// Requests it again after the uid change, which cleared it, and reports how strong the tie is.
pub(super) fn tie_to_monitor(plan: &Plan) -> Result<Option<Status>, StepError> {
    die_with_monitor(plan)?;
    Ok(Some(match identity::assigned(plan) {
        // The first process of a pid namespace can only be killed from outside, and all others die with it.
        _ if plan.namespaces.get().is_some() => Status::Enforced,
        Ok(_) => Status::Enforced,
        Err(_) => Status::StandIn(
            "it has its monitor's uid and could kill it; then only its first process is sure to die \
             (give it a uid of its own)"
                .into(),
        ),
    }))
}

/// No process from here on can gain privileges by executing a file.
pub(super) fn no_new_privs(_: &Plan) -> Result<Option<Status>, StepError> {
    set_no_new_privs(true)
        .map_err(|errno| StepError::errno("cannot give up new privileges", errno.raw_os_error(), ""))?;
    Ok(Some(Status::Enforced))
}

/// Files that it creates are accessible to its own uid only.
pub(super) fn set_umask(_: &Plan) -> Result<Option<Status>, StepError> {
    umask(Mode::RWXG | Mode::RWXO);
    Ok(None)
}

/// Enters the working directory, with the program's own rights.
pub(super) fn enter_directory(plan: &Plan) -> Result<Option<Status>, StepError> {
    let cwd = &plan.spec.cwd;
    rustix::process::chdir(cwd).map_err(|errno| {
        let what = format!("cannot enter {}", cwd.display());
        let advice = match errno {
            rustix::io::Errno::NOENT => "create it, or correct the plugin's configuration",
            rustix::io::Errno::ACCESS => "its uid must be allowed to enter it and each directory above it",
            rustix::io::Errno::NOTDIR => "it must be a directory",
            _ => "correct the plugin's configuration",
        };
        StepError::errno(&what, errno.raw_os_error(), advice)
    })?;
    Ok(None)
}
