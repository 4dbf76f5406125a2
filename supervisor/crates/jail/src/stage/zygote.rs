//! The zygote: the stage that was executed, which clones itself for each program and does nothing else.
//!
//! It has one thread, opens nothing, and sees of a spec no more than which namespaces it asks for. What it makes is
//! a child of the supervisor, which reaps it and holds its lifeline; the zygote keeps nothing of it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::exit;

use rustix::process::{DumpableBehavior, PidfdFlags, getpid, pidfd_open, set_dumpable_behavior};
use rustix::stdio::{dup2_stderr, dup2_stdout};

use super::FORK_ADVICE;
use super::namespaces::{self, Birth, Born, Ids};
use super::step::StepError;
use crate::sys;
use crate::sys::namespaces::Cloned;
use crate::wire::{self, Call, Note, Received};

/// What the zygote is called, in `ps`.
const NAME: &std::ffi::CStr = c"talon-zygote";

/// Makes a stage for each call, until nobody holds the other end. Comes back in each of the stages, with its control
/// socket and how it was born.
pub(super) fn serve(calls: OwnedFd) -> Result<(OwnedFd, Born), StepError> {
    sys::single_thread().map_err(|error| StepError::io("cannot clone itself", &error, ""))?;
    super::block_signals()?;
    // A ^C is the supervisor's to handle.
    rustix::process::setsid()
        .map_err(|errno| StepError::errno("cannot begin a session", errno.raw_os_error(), ""))?;
    // It may have the supervisor's rights and a program's uid.
    set_dumpable(DumpableBehavior::NotDumpable)?;
    let _ = rustix::thread::set_name(NAME);
    // Neither it nor a monitor uses as much memory as one of them has; a program is allowed them again.
    let _ = crate::around::forgo_huge_pages();
    loop {
        match wire::receive_waiting::<Call>(&calls) {
            Ok(Received::Packet(call, descriptors)) => {
                if let Some(stage) = answer(&call, descriptors)? {
                    return Ok(stage);
                }
            }
            Ok(Received::Nothing) => {}
            Ok(Received::Closed) => exit(0),
            Err(error) => return Err(StepError::io("cannot read a call", &error, "")),
        }
    }
}

/// Clones itself. In the clone it gives what the stage begins with.
fn answer(call: &Call, descriptors: Vec<OwnedFd>) -> Result<Option<(OwnedFd, Born)>, StepError> {
    let Ok([control, stdout, stderr]) = <[OwnedFd; 3]>::try_from(descriptors) else {
        return Err(StepError::new("a call came without its descriptors"));
    };
    let (cloned, born) = match clone(call) {
        Ok(cloned) => cloned,
        Err(error) => {
            let _ = wire::send(control.as_fd(), &Note::failed("monitor", &error.reason), &[]);
            return Ok(None);
        }
    };
    match cloned {
        Cloned::Child => {
            introduce_ourselves(&control)?;
            dup2_stdout(&stdout).and_then(|()| dup2_stderr(&stderr)).map_err(|errno| {
                StepError::errno("cannot take the program's output", errno.raw_os_error(), "")
            })?;
            Ok(Some((control, born)))
        }
        Cloned::Parent => Ok(None),
    }
}

/// Tells the supervisor who its new child is, before anything else is said: it has to reap it.
fn introduce_ourselves(control: &OwnedFd) -> Result<(), StepError> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(|errno| StepError::errno("cannot open a pidfd", errno.raw_os_error(), FORK_ADVICE))?;
    wire::send(control.as_fd(), &Note::Born, &[pidfd.as_fd()])
        .map_err(|error| StepError::io("cannot reach the supervisor", &error, ""))
}

/// Into namespaces, if they are wanted and can be had. Otherwise without: the step `namespaces` says what that means.
fn clone(call: &Call) -> Result<(Cloned, Born), StepError> {
    let plain = || {
        sys::namespaces::clone_as_sibling(0)
            .map_err(|error| StepError::io("cannot start the monitor", &error, FORK_ADVICE))
    };
    let (held, flags) = match namespaces::wanted(call) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return Ok((plain()?, Born::Plain)),
        Err(refused) => return Ok((plain()?, Born::Refused(refused))),
    };
    let ids = Ids::own();
    match sys::namespaces::clone_as_sibling(flags) {
        Ok(cloned) => Ok((cloned, Born::First(Birth { held, ids, ahead: call.ahead }))),
        Err(error) => Ok((plain()?, Born::Refused(namespaces::refused(&error, held)))),
    }
}

/// Makes what it has in `/proc/self` its own again, which it writes to. Not before there is a program for it: one that waits for
/// its order is as little to be looked into as the zygote.
pub(super) fn be_open_to_ourselves() -> Result<(), StepError> {
    set_dumpable(DumpableBehavior::Dumpable)
}

fn set_dumpable(behavior: DumpableBehavior) -> Result<(), StepError> {
    set_dumpable_behavior(behavior)
        .map_err(|errno| StepError::errno("cannot say who may trace it", errno.raw_os_error(), ""))
}
