//! The cgroup of one program.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use super::control_file::keyed_value;
use super::remove;
use crate::exit::ExitStatus;

/// The cgroup of one program. Dropping it kills the remaining processes and removes it, which blocks for at
/// most two seconds. Processes that the kernel cannot end in that time are left to the next
/// [`Groups::clear`](super::Groups::clear).
#[derive(Debug)]
pub struct Group {
    pub(super) dir: PathBuf,
    pub(super) procs: File,
    pub(super) memory_bytes: u64,
    pub(super) missing_limits: Vec<String>,
    /// Whether another supervisor owns it now.
    pub(super) released: bool,
}

impl Group {
    /// Its `cgroup.procs`, open for writing, for [`crate::InheritedFds`].
    pub fn procs(&self) -> BorrowedFd<'_> {
        self.procs.as_fd()
    }

    /// The limits that could not be set, one text each: `io.weight: not offered by this kernel`.
    pub fn missing_limits(&self) -> &[String] {
        &self.missing_limits
    }

    /// Sends SIGKILL to everything in it, including the program's monitor. Does not wait for their end.
    pub fn kill(&self) -> io::Result<()> {
        remove::kill(&self.dir)
    }

    /// How many of its processes the kernel killed because memory ran out.
    pub fn oom_kills(&self) -> u64 {
        self.event("memory.events", "oom_kill")
    }

    /// How many times a new process or thread was refused.
    pub fn pids_refused(&self) -> u64 {
        self.event("pids.events", "max")
    }

    /// Bytes of memory in use, including files in memory; `None` without the controller.
    pub fn memory_current(&self) -> Option<u64> {
        self.number("memory.current")
    }

    /// CPU time of everything that ever ran in it.
    pub fn cpu_time(&self) -> Option<Duration> {
        keyed_value(&self.dir.join("cpu.stat"), "usage_usec").map(Duration::from_micros)
    }

    /// How many processes and threads are in it; `None` without the controller.
    pub fn pids_current(&self) -> Option<u64> {
        self.number("pids.current")
    }

    /// How the program ended, corrected if it ran out of memory. The kernel kills the whole cgroup then,
    /// including the monitor, so that the supervisor only sees a lost monitor.
    pub fn explain(&self, status: ExitStatus) -> ExitStatus {
        let killed = Signal::KILL.as_raw();
        match status {
            ExitStatus::Signal { signal, .. } if signal != killed => status,
            ExitStatus::Signal { .. } | ExitStatus::MonitorLost if self.oom_kills() > 0 => {
                // Kernels before 5.19 do not report the peak, which was at or just below the limit.
                let bytes = self.number("memory.peak").unwrap_or(self.memory_bytes);
                ExitStatus::OutOfMemory { bytes, limit: self.memory_bytes }
            }
            other => other,
        }
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.dir.join(file)).ok()?.trim().parse().ok()
    }

    fn event(&self, file: &str, name: &str) -> u64 {
        keyed_value(&self.dir.join(file), name).unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.released {
            remove::group(&self.dir);
        }
    }
}
