//! How a program ended.

use std::fmt;

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

/// How a program ended, as its monitor saw it. Reads as "exit code 3" or "killed by SIGKILL".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It exited with this exit code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        signal: i32,
        /// Whether the kernel wrote a core dump (jailed programs have none, unless their limit says so).
        core_dumped: bool,
    },
    /// The program and its children exceeded their memory limit together, and all of them were killed.
    OutOfMemory {
        /// The memory in use when this was found.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The program and its children held too many locks on byte ranges of files, whose memory nothing else
    /// limits without a cgroup; all of them were killed.
    TooManyLocks {
        /// The most that they may hold together.
        limit: u64,
    },
    /// The memory of its processes could not be read any more, so all of them were killed: otherwise they
    /// could have exceeded the limit unnoticed.
    Unwatched {
        /// The error.
        errno: i32,
    },
    /// The monitor ended without a report, so the program's exit is unknown. The processes that the monitor
    /// watched were killed as far as this can be determined from outside.
    MonitorLost,
}

/// The kernel's flag in a wait status for "a core was dumped".
const CORE_DUMPED: i32 = 0x80;

impl ExitStatus {
    /// Converts waitpid's status; `None` for a process that was only stopped or continued.
    pub(crate) fn from_wait(status: WaitStatus) -> Option<Self> {
        if let Some(code) = status.exit_status() {
            return Some(Self::Code(code));
        }
        let signal = status.terminating_signal()?;
        Some(Self::Signal { signal, core_dumped: status.as_raw() & CORE_DUMPED != 0 })
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal { signal, core_dumped } => {
                match nix::sys::signal::Signal::try_from(signal) {
                    Ok(name) => write!(f, "killed by {name}")?,
                    Err(_) => write!(f, "killed by signal {signal}")?,
                }
                if core_dumped { f.write_str(" (core dumped)") } else { Ok(()) }
            }
            // The kernel stops processes at the limit; the memory watch finds them above it.
            Self::OutOfMemory { bytes, limit } if bytes > limit => {
                let (bytes, limit) = (Bytes(bytes), Bytes(limit));
                write!(
                    f,
                    "killed: its processes used {bytes} together, the limit is {limit} (limits.memory_bytes)"
                )
            }
            Self::OutOfMemory { limit, .. } => {
                let limit = Bytes(limit);
                write!(f, "killed: its processes used up their {limit} of memory (limits.memory_bytes)")
            }
            Self::TooManyLocks { limit } => write!(
                f,
                "killed: its processes held more than {limit} locks on byte ranges of files, which only a cgroup \
                 could count as memory (delegate one: Delegate=yes)"
            ),
            Self::Unwatched { errno } => {
                let why = nix::errno::Errno::from_raw(errno).desc();
                write!(f, "killed: the memory of its processes could not be read any more ({why})")
            }
            Self::MonitorLost => f.write_str("unknown: its monitor was killed"),
        }
    }
}

/// Reads as "1.2 GiB". Sizes that differ may read the same.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let Some((unit, size)) = units.into_iter().find(|(_, size)| self.0 >= *size) else {
            return write!(f, "{} bytes", self.0);
        };
        let (whole, tenth) = (self.0 / size, self.0 % size * 10 / size);
        if tenth == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{tenth} {unit}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_person_would_say_it() {
        assert_eq!(ExitStatus::Code(3).to_string(), "exit code 3");
        let killed = ExitStatus::Signal { signal: 9, core_dumped: false };
        assert_eq!(killed.to_string(), "killed by SIGKILL");
        let dumped = ExitStatus::Signal { signal: 11, core_dumped: true };
        assert_eq!(dumped.to_string(), "killed by SIGSEGV (core dumped)");
        let realtime = ExitStatus::Signal { signal: 40, core_dumped: false };
        assert_eq!(realtime.to_string(), "killed by signal 40");
        let watched = ExitStatus::OutOfMemory { bytes: (1 << 30) + (250 << 20), limit: 1 << 30 };
        assert_eq!(
            watched.to_string(),
            "killed: its processes used 1.2 GiB together, the limit is 1 GiB (limits.memory_bytes)"
        );
        let stopped = ExitStatus::OutOfMemory { bytes: 64 << 20, limit: 64 << 20 };
        assert_eq!(
            stopped.to_string(),
            "killed: its processes used up their 64 MiB of memory (limits.memory_bytes)"
        );
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let texts = [0, 1023, 1024, 1536, u64::MAX].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(texts, ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "17179869183.9 GiB"]);
    }
}
