//! How a program ended.

use std::fmt;

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

/// How a program ended, as its monitor saw it. Reads as "exit code 3" or "killed by SIGKILL".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// It ended by itself with this exit code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        signal: i32,
        /// Whether the kernel wrote a core dump (jailed programs have none, unless their limit says so).
        core_dumped: bool,
    },
    /// The monitor ended without a report, so nobody knows. What it watched has been killed as far as can be
    /// known from outside.
    MonitorLost,
}

/// The kernel's flag in a wait status for "a core was dumped".
const CORE_DUMPED: i32 = 0x80;

impl ExitStatus {
    /// What waitpid said; `None` for a process that only stopped or went on.
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
            Self::MonitorLost => f.write_str("unknown: its monitor was killed"),
        }
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
    }
}
