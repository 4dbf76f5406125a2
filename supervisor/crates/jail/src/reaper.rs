//! Ended monitors that are still to be reaped.
//!
//! A dropped [`crate::Monitor`] ends a moment later, and would stay a zombie of the supervisor. Its pidfd is
//! kept here, and the next spawn or drop reaps it. There are never more entries than monitors that are just
//! ending.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::process_identity;

static UNREAPED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Reaps the process if it has ended. Returns true when nothing is left to reap.
pub(crate) fn reap(pidfd: BorrowedFd<'_>) -> Result<bool, Errno> {
    match waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => Ok(status.is_some()),
        // Already reaped, or not our child: nothing is left to do once it has ended, since its parent reaps
        // it.
        Err(Errno::CHILD) => process_identity::has_ended(pidfd),
        Err(errno) => Err(errno),
    }
}

/// Keeps a process to be reaped later.
pub(crate) fn reap_later(pidfd: OwnedFd) {
    let mut ending = UNREAPED.lock();
    ending.push(pidfd);
    reap_ended_locked(&mut ending);
}

/// Reaps the kept processes that have ended.
pub(crate) fn reap_ended() {
    reap_ended_locked(&mut UNREAPED.lock());
}

fn reap_ended_locked(ending: &mut Vec<OwnedFd>) {
    ending.retain(|pidfd| !reap(pidfd.as_fd()).unwrap_or(true));
}
