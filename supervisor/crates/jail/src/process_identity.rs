//! Identifies a process: by its pid, and by what distinguishes it from processes that had that pid before or
//! get it later.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use serde::{Deserialize, Serialize};

/// A process's identity, which another process can compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its pid.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did (field 22 of `/proc/PID/stat`).
    pub started: u64,
    /// Its effective uid.
    pub uid: u32,
}

impl ProcessIdentity {
    /// The identity of the process behind a pidfd.
    ///
    /// # Errors
    /// If it has ended, or is hidden from us (`hidepid`, `ProtectProc=`).
    pub fn of(pidfd: BorrowedFd<'_>) -> io::Result<Self> {
        let pid = pid_of(pidfd);
        let ended = || io::Error::new(io::ErrorKind::NotFound, "the process has ended");
        if pid == 0 {
            return Err(ended());
        }
        let stat = std::fs::read(format!("/proc/{pid}/stat"))?;
        let status = std::fs::read(format!("/proc/{pid}/status"))?;
        // If it has not ended by now, the pid was its own all the time.
        if has_ended(pidfd)? {
            return Err(ended());
        }
        let unread = || io::Error::new(io::ErrorKind::InvalidData, "what /proc tells of it cannot be read");
        let started = start_time(&String::from_utf8_lossy(&stat)).ok_or_else(unread)?;
        let uid = effective_uid(&String::from_utf8_lossy(&status)).ok_or_else(unread)?;
        Ok(Self { pid, started, uid })
    }
}

/// The pid of a process in our own namespace; 0 once it has ended. Its monitor knows the pid in the monitor's
/// namespace.
pub(crate) fn pid_of(pidfd: BorrowedFd<'_>) -> u32 {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()));
    let info = info.unwrap_or_default();
    info.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok()).unwrap_or(0)
}

/// Whether a process has ended; it may not have been reaped yet.
pub(crate) fn has_ended(pidfd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    Ok(retry_on_intr(|| poll(&mut polled, Some(&now)))? > 0)
}

/// `pid (name) state ppid …`, where the name may hold anything; the start is the 20th behind it.
fn start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// `Uid:` real, effective, saved, of files.
fn effective_uid(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn a_process_is_known_as_long_as_it_lives() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let who = ProcessIdentity::of(pidfd.as_fd()).unwrap();
        assert_eq!(who.pid, child.id());
        assert_eq!(who.uid, rustix::process::geteuid().as_raw());
        let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).unwrap();
        assert!(ProcessIdentity::of(own.as_fd()).unwrap().started <= who.started);
        assert!(!has_ended(pidfd.as_fd()).unwrap());
        drop(child.stdin.take());
        let waited = retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None));
        assert_eq!(waited, Ok(1));
        // A zombie has ended, though its pid is still reserved.
        assert_eq!(ProcessIdentity::of(pidfd.as_fd()).unwrap_err().kind(), io::ErrorKind::NotFound);
        child.wait().unwrap();
        assert_eq!(ProcessIdentity::of(pidfd.as_fd()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_name_does_not_move_the_fields() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("1 (a) S (b) {}", fields.join(" "));
        assert_eq!(start_time(&stat), Some(22));
        assert_eq!(start_time("1 (a) S 2"), None);
        assert_eq!(effective_uid("Name:\tx\nUid:\t1\t2\t3\t4\n"), Some(2));
    }
}
