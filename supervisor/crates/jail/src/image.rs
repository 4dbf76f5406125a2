//! The stage's image: a sealed copy of our own executable, in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use crate::standby::{StageEndpoints, StandbySlot, StartedStage};
use crate::wire::StageRequest;
use crate::zygote::{Zygote, ZygoteSlot};

/// The stage's first argument, by which [`crate::become_stage_if_asked`] recognizes it.
pub(crate) const STAGE_NAME: &str = "talon-jail-stage";

/// Seals that make a memory file immutable. Of the two seals against writing this is the one for future
/// writes: a never mapped file needs no other. The older seal waits for pages that the kernel holds for a
/// moment, and fails with EBUSY on a busy machine.
pub(crate) const SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE);

/// Sealed copy of our own image, made once when the supervisor starts.
///
/// It is a copy, so that an upgrade of the file on disk does not swap the stage under a running supervisor.
/// It is sealed, so that no process can write to it. It takes the size of the executable in memory, once for
/// all stages.
///
/// The first program that is started in a jail executes it once, as the zygote: a small process of which
/// every stage is a clone. The zygote ends when this value is dropped.
#[derive(Debug)]
pub struct Stage {
    image: OwnedFd,
    // Dropped before the zygote, of which it is a clone.
    standby: StandbySlot,
    zygote: ZygoteSlot,
}

/// Why the stage's image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The image could not be read.
    #[error("cannot read our own executable: {0} (is /proc mounted?)")]
    Open(#[source] io::Error),
    /// This machine forbids executable memory files.
    #[error(
        "this machine forbids executable memory files, which the jail's stage is (set the sysctl vm.memfd_noexec to 0 or 1)"
    )]
    Forbidden,
    /// The copy could not be made.
    #[error(
        "cannot copy our own executable into memory: {0} (free some memory, or raise the service's memory limit)"
    )]
    Copy(#[source] io::Error),
    /// The copy could not be sealed.
    #[error("cannot seal the copy of our own executable: {0} (the kernel must be Linux 5.9 or newer)")]
    Seal(#[source] io::Error),
}

impl Stage {
    /// Copies the executable that is running now, even if its file was replaced since.
    pub fn from_current_exe() -> Result<Self, StageError> {
        Self::from_image(File::open("/proc/self/exe").map_err(StageError::Open)?)
    }

    /// Copies another executable, whose `main` must begin with [`crate::become_stage_if_asked`]. For tests,
    /// whose own `main` belongs to the test harness.
    pub fn from_image(mut image: File) -> Result<Self, StageError> {
        let mut copy = File::from(create_memory_file()?);
        io::copy(&mut image, &mut copy).map_err(StageError::Copy)?;
        fcntl_add_seals(&copy, SEALS).map_err(|errno| StageError::Seal(errno.into()))?;
        Ok(Self { image: copy.into(), standby: StandbySlot::default(), zygote: ZygoteSlot::default() })
    }

    /// Requests a stage that gets these three descriptors and nothing else of ours; returns the zygote that
    /// makes it.
    pub(crate) fn start(
        &self,
        call: &StageRequest,
        [control, stdout, stderr]: [OwnedFd; 3],
        deadline: Option<Instant>,
    ) -> io::Result<Arc<Zygote>> {
        let descriptors = [control.as_fd(), stdout.as_fd(), stderr.as_fd()];
        self.zygote.call(|| self.command(STAGE_NAME), call, &descriptors, deadline)
    }

    /// From now on keeps a standby stage, made whenever a program was started in a jail. For supervisors that
    /// start many programs or restart them. It takes one more small process.
    #[must_use]
    pub fn with_standby(self) -> Self {
        self.standby.enable();
        self
    }

    /// The standby stage, if there is one that fits the request.
    pub(crate) fn take_standby(&self, call: &StageRequest) -> Option<StartedStage> {
        self.standby.take(call)
    }

    /// Requests a standby stage for the next request like this one, if enabled. Does not wait for it; a
    /// failure shows when the standby stage is used.
    pub(crate) fn prepare_standby(&self, call: &StageRequest) {
        let Some(call) = self.standby.next_request(call) else { return };
        let Ok((ends, theirs)) = StageEndpoints::create() else { return };
        if let Ok(zygote) = self.start(&call, theirs, Some(Instant::now())) {
            self.standby.put(call, StartedStage { endpoints: ends, zygote });
        }
    }

    /// Ends a zygote that did not do what was requested.
    pub(crate) fn discard_zygote(&self, zygote: &Arc<Zygote>) {
        self.zygote.discard(zygote);
    }

    /// The command that executes the image; `name` selects its role.
    pub(crate) fn command(&self, name: &str) -> Command {
        // Nothing here may take std off its posix_spawn path: no pre_exec, no uid, no groups, and a program
        // with a slash in it, since the environment is cleared.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.image.as_raw_fd()));
        command.arg0(name).env_clear();
        command
    }
}

/// An empty executable memory file. Kernels before 6.3 do not know the flag for that, and do not need it.
fn create_memory_file() -> Result<OwnedFd, StageError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let created = match memfd_create(STAGE_NAME, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create(STAGE_NAME, flags),
        other => other,
    };
    created.map_err(|errno| match errno {
        Errno::ACCESS => StageError::Forbidden,
        errno => StageError::Copy(errno.into()),
    })
}
