//! A monitor's way from one supervisor to another.
//!
//! What a supervisor holds of a program are three descriptors, and whoever holds them is its supervisor. For a while both may:
//! the lifeline ends when the last of them has let go. The new one is not the monitor's parent, so that it cannot reap it; the
//! process that adopts orphans does.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use crate::monitor::Monitor;
use crate::who::Who;

/// What a monitor's handle is made of.
#[derive(Debug)]
pub struct MonitorParts {
    /// Who the monitor is.
    pub monitor: Who,
    /// Who the program is.
    pub program: Who,
    /// The control socket, whose closing is the lifeline.
    pub control: OwnedFd,
    /// Of the monitor.
    pub pidfd: OwnedFd,
    /// Of the program.
    pub program_pidfd: OwnedFd,
}

/// Why a monitor was not adopted. Everything that it watches is killed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError {
    /// It is not there any more, or cannot be looked at.
    #[error("its {who} is gone or hidden: {source}")]
    Unknown {
        /// Which of the two processes.
        who: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// It is another process than was said.
    #[error(
        "its {who} should be process {} (started at {}, uid {}) and is process {} (started at {}, uid {})",
        said.pid, said.started, said.uid, found.pid, found.started, found.uid
    )]
    Another {
        /// Which of the two processes.
        who: &'static str,
        /// Who it was said to be.
        said: Who,
        /// Who it is.
        found: Who,
    },
    /// What should be the control socket is something else.
    #[error("what should be its control socket is none")]
    Control,
}

impl Monitor {
    /// Duplicates what the handle is made of, for another supervisor. Changes nothing.
    ///
    /// # Errors
    /// When the monitor or the program has ended, or there are too many open files.
    pub fn share(&self) -> io::Result<MonitorParts> {
        Ok(MonitorParts {
            monitor: Who::of(self.pidfd())?,
            program: Who::of(self.program())?,
            control: self.control().try_clone_to_owned()?,
            pidfd: self.pidfd().try_clone_to_owned()?,
            program_pidfd: self.program().try_clone_to_owned()?,
        })
    }

    /// Takes over what another supervisor shared. The monitor and the program have to live and to be who they are said to be.
    ///
    /// # Errors
    /// [`AdoptError`]
    pub fn adopt(parts: MonitorParts) -> Result<Self, AdoptError> {
        let MonitorParts { monitor, program, control, pidfd, program_pidfd } = parts;
        // From here on dropping it kills what is behind the descriptors, whoever that is.
        let adopted = Self::new(monitor.pid, pidfd, control, program_pidfd);
        if !matches!(socket_type(adopted.control()), Ok(SocketType::SEQPACKET)) {
            return Err(AdoptError::Control);
        }
        check(monitor, "monitor", adopted.pidfd())?;
        check(program, "program", adopted.program())?;
        Ok(adopted)
    }
}

fn check(said: Who, who: &'static str, pidfd: BorrowedFd<'_>) -> Result<(), AdoptError> {
    match Who::of(pidfd) {
        Ok(found) if found == said => Ok(()),
        Ok(found) => Err(AdoptError::Another { who, said, found }),
        Err(source) => Err(AdoptError::Unknown { who, source }),
    }
}
