//! Ended monitors that are still to be reaped.
//!
//! A dropped [`crate::Monitor`] ends a moment later, and would stay a zombie of the supervisor. Its pidfd is kept here,
//! and the next spawn or drop reaps it. There are never more entries than monitors that are just ending.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::who;

static ENDING: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Reaps the process if it has ended. Returns true when nothing is left to reap.
pub(crate) fn reap(pidfd: BorrowedFd<'_>) -> Result<bool, Errno> {
    match waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => Ok(status.is_some()),
        // Already reaped, or not our child: nothing is left to do once it has ended, since its parent reaps it.
        Err(Errno::CHILD) => who::has_ended(pidfd),
        Err(errno) => Err(errno),
    }
}

/// Keeps a process to be reaped later.
pub(crate) fn bury(pidfd: OwnedFd) {
    let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    ending.push(pidfd);
    sweep_locked(&mut ending);
}

/// Reaps the kept processes that have ended.
pub(crate) fn sweep() {
    sweep_locked(&mut ENDING.lock().unwrap_or_else(PoisonError::into_inner));
}

fn sweep_locked(ending: &mut Vec<OwnedFd>) {
    ending.retain(|pidfd| !reap(pidfd.as_fd()).unwrap_or(true));
}
