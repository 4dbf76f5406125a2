//! Signals in the stage: all blocked; ended children are read from a descriptor.

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::step_error::StepError;
use crate::sys;

/// Blocks every signal, here and in everything that is cloned from here.
pub(super) fn block_signals() -> Result<(), StepError> {
    // An inherited "ignore" of SIGCHLD would lose the exit status.
    sys::reset_signals();
    SigSet::all()
        .thread_set_mask()
        .map_err(|errno| StepError::errno("cannot block signals", errno as i32, ""))
}

/// Opens the signalfd for ended children.
pub(super) fn child_signal_fd() -> Result<SignalFd, StepError> {
    let mut children = SigSet::empty();
    children.add(nix::sys::signal::Signal::SIGCHLD);
    SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| StepError::errno("cannot watch for ended children", errno as i32, ""))
}
