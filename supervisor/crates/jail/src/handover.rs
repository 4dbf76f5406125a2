//! Hands a monitor over from one supervisor to another.
//!
//! A supervisor holds three descriptors for each program; a process that holds them is its supervisor. For a
//! while both may hold them: the lifeline ends when the last copy is closed. The new supervisor is not the
//! monitor's parent, so it cannot reap it; the process that adopts orphans does.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use crate::monitor::Monitor;
use crate::process_identity::ProcessIdentity;

/// The parts of a monitor's handle.
#[derive(Debug)]
pub struct MonitorParts {
    /// The monitor's identity.
    pub monitor: ProcessIdentity,
    /// The program's identity.
    pub program: ProcessIdentity,
    /// The control socket, whose closing is the lifeline.
    pub control: OwnedFd,
    /// Pidfd of the monitor.
    pub pidfd: OwnedFd,
    /// Pidfd of the program.
    pub program_pidfd: OwnedFd,
}

/// Why a monitor was not adopted. Everything that it watches is killed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError {
    /// The process is gone, or cannot be inspected.
    #[error("its {who} is gone or hidden: {source}")]
    Unknown {
        /// Which of the two processes.
        who: &'static str,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The pidfd refers to another process than stated.
    #[error(
        "its {who} should be process {} (started at {}, uid {}) and is process {} (started at {}, uid {})",
        said.pid, said.started, said.uid, found.pid, found.started, found.uid
    )]
    DifferentProcess {
        /// Which of the two processes.
        who: &'static str,
        /// The stated identity.
        said: ProcessIdentity,
        /// The actual identity.
        found: ProcessIdentity,
    },
    /// The descriptor is not a control socket.
    #[error("what should be its control socket is none")]
    Control,
}

impl Monitor {
    /// Duplicates the parts of the handle, for another supervisor. Changes nothing.
    ///
    /// # Errors
    /// If the monitor or the program has ended, or there are too many open files.
    pub fn share(&self) -> io::Result<MonitorParts> {
        Ok(MonitorParts {
            monitor: ProcessIdentity::of(self.pidfd())?,
            program: ProcessIdentity::of(self.program_pidfd())?,
            control: self.control().try_clone_to_owned()?,
            pidfd: self.pidfd().try_clone_to_owned()?,
            program_pidfd: self.program_pidfd().try_clone_to_owned()?,
        })
    }

    /// Takes over what another supervisor shared. The monitor and the program must be alive and have the
    /// stated identities.
    ///
    /// # Errors
    /// [`AdoptError`]
    pub fn adopt(parts: MonitorParts) -> Result<Self, AdoptError> {
        let MonitorParts { monitor, program, control, pidfd, program_pidfd } = parts;
        // From here on, dropping it kills the processes behind the descriptors, even if they are not the
        // stated ones.
        let adopted = Self::new(monitor.pid, pidfd, control, program_pidfd);
        if !matches!(socket_type(adopted.control()), Ok(SocketType::SEQPACKET)) {
            return Err(AdoptError::Control);
        }
        check_identity(monitor, "monitor", adopted.pidfd())?;
        check_identity(program, "program", adopted.program_pidfd())?;
        Ok(adopted)
    }
}

fn check_identity(said: ProcessIdentity, who: &'static str, pidfd: BorrowedFd<'_>) -> Result<(), AdoptError> {
    match ProcessIdentity::of(pidfd) {
        Ok(found) if found == said => Ok(()),
        Ok(found) => Err(AdoptError::DifferentProcess { who, said, found }),
        Err(source) => Err(AdoptError::Unknown { who, source }),
    }
}
