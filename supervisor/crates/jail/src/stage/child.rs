//! The child of the stage, which becomes the program.

use std::io::{PipeWriter, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::exit;

use nix::sys::signal::SigSet;

use super::request::Plan;
use super::step::{NOT_RUN_EXIT_CODE, Step, base, protection, run_steps};
use super::step_error::StepError;
use super::{
    capabilities, descriptors, filter, identity, keyring, landlock, learn, limits, priority, program,
    session, socket_broker,
};
use crate::report::{
    BOUNDING_SET, CAPABILITIES, CPU_SHARE, KEYRING, LANDLOCK, NETWORK, NO_NEW_PRIVS, OWN_UID, PROCESS_COUNT,
    PROCESS_TREE, RLIMITS, SYSTEM_CALLS,
};
use crate::wire::{self, StageNote};

/// What the child does, in this order.
const STEPS: &[Step] = &[
    base("process-group", "", session::new_process_group),
    base("standard-input", "", descriptors::set_standard_input),
    base("output", "", descriptors::chown_output),
    base("parent-death", "", session::die_with_monitor),
    protection(NETWORK, socket_broker::leave_host_network),
    protection(PROCESS_COUNT, limits::process_count),
    protection(BOUNDING_SET, capabilities::drop_bounding_set),
    base("identity", OWN_UID, identity::switch_ids),
    base(PROCESS_TREE, PROCESS_TREE, session::tie_to_monitor),
    protection(NO_NEW_PRIVS, session::no_new_privs),
    protection(KEYRING, keyring::join_new_session),
    base("umask", "", session::set_umask),
    base("directory", "", session::enter_directory),
    protection(CAPABILITIES, capabilities::drop_all),
    protection(LANDLOCK, landlock::restrict),
    protection(CPU_SHARE, priority::raise_niceness),
    base("huge-pages", "", priority::allow_huge_pages),
    protection(RLIMITS, limits::per_process),
    protection(NETWORK, socket_broker::report),
    protection(SYSTEM_CALLS, filter::load),
];

/// Sent by the child to the monitor just before it executes the program. The end of that pipe means that it
/// has executed…
pub(super) const EXECUTING: u8 = b'x';
/// … or has not, and has sent the supervisor the reason.
pub(super) const REPORTED: u8 = b'f';

/// Builds the rest of the jail and executes the program.
pub(super) fn run(plan: &Plan, control: &OwnedFd, mut executing: PipeWriter) -> ! {
    let (step, error) = match run_child_steps(plan, control) {
        Ok(()) => {
            plan.progress.begin("program");
            // A closed pipe means that the monitor is dead, and then this process is killed too.
            let _ = executing.write_all(&[EXECUTING]);
            ("program", program::execute(plan))
        }
        Err(failed) => failed,
    };
    let _ = wire::send(control.as_fd(), &StageNote::failed(step, &error.reason), &[]);
    let _ = executing.write_all(&[REPORTED]);
    exit(NOT_RUN_EXIT_CODE);
}

fn run_child_steps(plan: &Plan, control: &OwnedFd) -> Result<(), (&'static str, StepError)> {
    run_steps(STEPS, plan)?;
    plan.progress.begin("report");
    // A lost line would hide that a protection is missing.
    wire::send_report(control.as_fd(), plan.report.take())
        .map_err(|error| ("report", StepError::io("cannot report", &error, "")))?;
    learn::send_listener(plan, control.as_fd()).map_err(|error| ("learning", error))?;
    plan.progress.begin("unblock");
    SigSet::empty()
        .thread_set_mask()
        .map_err(|errno| ("unblock", StepError::errno("cannot unblock signals", errno as i32, "")))
}
