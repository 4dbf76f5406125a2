//! The descriptors that a stage keeps open: its socket, and the program's output and errors.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Gid, Uid, fchown};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::SocketType;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::identity;
use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;
use crate::sys;

/// The first descriptor that is not a standard one.
const FIRST_OTHER: i32 = 3;

/// Moves the zygote's socket away from descriptor 0, and closes everything else.
pub(super) fn take_socket() -> Result<OwnedFd, StepError> {
    sys::close_from(FIRST_OTHER as u32).map_err(|error| {
        StepError::io("cannot close what was inherited", &error, "Linux 5.9 or newer is needed")
    })?;
    let socket = fcntl_dupfd_cloexec(io::stdin().as_fd(), FIRST_OTHER).map_err(|errno| {
        StepError::errno("there is no socket as standard input", errno.raw_os_error(), "")
    })?;
    // Report it if a person starts this by hand, instead of exiting without a message.
    if rustix::net::sockopt::socket_type(&socket) != Ok(SocketType::SEQPACKET) {
        return Err(StepError::new("standard input is not a socket of the supervisor's"));
    }
    let null = open_null()?;
    dup2_stdin(&null)
        .map_err(|errno| StepError::errno("cannot replace standard input", errno.raw_os_error(), ""))?;
    Ok(socket)
}

/// Sets the program's standard input to the passed descriptor.
pub(super) fn set_standard_input(plan: &Plan) -> Result<Option<Status>, StepError> {
    if let Some(given) = &plan.stdin {
        dup2_stdin(given)
            .map_err(|errno| StepError::errno("cannot replace standard input", errno.raw_os_error(), ""))?;
    }
    Ok(None)
}

/// Makes the program the owner of its output pipes, so that it can open them by name (`/dev/stdout`). Without
/// the right to change owners this is skipped, which costs the program only that.
pub(super) fn chown_output(plan: &Plan) -> Result<Option<Status>, StepError> {
    if let Ok(identity) = identity::assigned(plan) {
        let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
        let _ = fchown(io::stdout(), Some(uid), Some(gid));
        let _ = fchown(io::stderr(), Some(uid), Some(gid));
    }
    Ok(None)
}

/// Closes the program's pipes here, so that the supervisor sees their end when the program's whole tree is
/// gone.
pub(super) fn release_output() -> Result<(), StepError> {
    let null = open_null()?;
    dup2_stdout(&null)
        .and_then(|()| dup2_stderr(&null))
        .map_err(|errno| StepError::errno("cannot replace standard output", errno.raw_os_error(), ""))
}

fn open_null() -> Result<File, StepError> {
    File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| StepError::io("cannot open /dev/null", &error, "is /dev mounted?"))
}
