//! The zygote: the executed stage, which clones itself for each program and does nothing else.
//!
//! It has one thread, opens nothing, and of a spec sees only which namespaces it requests. Its clones are
//! children of the supervisor, which reaps them and holds their lifelines; the zygote keeps nothing of them.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::exit;

use rustix::process::{DumpableBehavior, PidfdFlags, getpid, pidfd_open, set_dumpable_behavior};
use rustix::stdio::{dup2_stderr, dup2_stdout};

use super::namespaces;
use super::origin::{NamespaceOrigin, StageOrigin, UserIds};
use super::signals::block_signals;
use super::step_error::StepError;
use crate::sys;
use crate::sys::namespaces::CloneResult;
use crate::wire::{self, ReceiveOutcome, StageNote, StageRequest};

/// The zygote's name in `ps`.
const NAME: &std::ffi::CStr = c"talon-zygote";

/// The advice where the kernel refuses another process.
pub(super) const FORK_ADVICE: &str = "raise the supervisor's process and open file limits";

/// Makes a stage for each request, until the supervisor closes the socket. Returns in each of the stages,
/// with its control socket and its origin.
pub(super) fn serve(calls: OwnedFd) -> Result<(OwnedFd, StageOrigin), StepError> {
    sys::single_thread().map_err(|error| StepError::io("cannot clone itself", &error, ""))?;
    block_signals()?;
    // A ^C is for the supervisor to handle.
    rustix::process::setsid()
        .map_err(|errno| StepError::errno("cannot begin a session", errno.raw_os_error(), ""))?;
    // It may have the supervisor's rights and a program's uid.
    set_dumpable(DumpableBehavior::NotDumpable)?;
    let _ = rustix::thread::set_name(NAME);
    // Neither it nor a monitor uses as much memory as one huge page; for a program they are enabled again.
    let _ = crate::process_settings::forgo_huge_pages();
    loop {
        match wire::receive_waiting::<StageRequest>(&calls) {
            Ok(ReceiveOutcome::Packet(call, descriptors)) => {
                if let Some(stage) = start_stage(&call, descriptors)? {
                    return Ok(stage);
                }
            }
            Ok(ReceiveOutcome::Empty) => {}
            Ok(ReceiveOutcome::Closed) => exit(0),
            Err(error) => return Err(StepError::io("cannot read a call", &error, "")),
        }
    }
}

/// Clones itself. In the clone, returns what the stage starts with.
fn start_stage(
    call: &StageRequest,
    descriptors: Vec<OwnedFd>,
) -> Result<Option<(OwnedFd, StageOrigin)>, StepError> {
    let Ok([control, stdout, stderr]) = <[OwnedFd; 3]>::try_from(descriptors) else {
        return Err(StepError::new("a call came without its descriptors"));
    };
    let (cloned, born) = match clone_stage(call) {
        Ok(cloned) => cloned,
        Err(error) => {
            let _ = wire::send(control.as_fd(), &StageNote::failed("monitor", &error.reason), &[]);
            return Ok(None);
        }
    };
    match cloned {
        CloneResult::Child => {
            send_own_pidfd(&control)?;
            dup2_stdout(&stdout).and_then(|()| dup2_stderr(&stderr)).map_err(|errno| {
                StepError::errno("cannot take the program's output", errno.raw_os_error(), "")
            })?;
            Ok(Some((control, born)))
        }
        CloneResult::Parent => Ok(None),
    }
}

/// Sends the supervisor a pidfd of this new child before anything else, so that it can reap it.
fn send_own_pidfd(control: &OwnedFd) -> Result<(), StepError> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|errno| StepError::errno("cannot open a pidfd", errno.raw_os_error(), FORK_ADVICE))?;
    wire::send(control.as_fd(), &StageNote::Born, &[pidfd.as_fd()])
        .map_err(|error| StepError::io("cannot reach the supervisor", &error, ""))
}

/// Clones into namespaces, if they are requested and possible, and otherwise without. The step `namespaces`
/// handles that case.
fn clone_stage(call: &StageRequest) -> Result<(CloneResult, StageOrigin), StepError> {
    let plain = || {
        sys::namespaces::clone_as_sibling(0)
            .map_err(|error| StepError::io("cannot start the monitor", &error, FORK_ADVICE))
    };
    let (held, flags) = match namespaces::requested(call) {
        Ok(Some(requested)) => requested,
        Ok(None) => return Ok((plain()?, StageOrigin::HostNamespaces)),
        Err(refused) => return Ok((plain()?, StageOrigin::Refused(refused))),
    };
    let ids = UserIds::own();
    match sys::namespaces::clone_as_sibling(flags) {
        Ok(cloned) => Ok((
            cloned,
            StageOrigin::NewNamespaces(NamespaceOrigin { namespaces: held, ids, ahead: call.ahead }),
        )),
        Err(error) => Ok((plain()?, StageOrigin::Refused(namespaces::refused(&error, held)))),
    }
}

/// Makes the files in `/proc/self` writable for itself again. Not before there is a program: a waiting
/// standby stage must not be traceable, like the zygote.
pub(super) fn become_dumpable() -> Result<(), StepError> {
    set_dumpable(DumpableBehavior::Dumpable)
}

fn set_dumpable(behavior: DumpableBehavior) -> Result<(), StepError> {
    set_dumpable_behavior(behavior)
        .map_err(|errno| StepError::errno("cannot say who may trace it", errno.raw_os_error(), ""))
}
