//! The stage's image: a sealed copy of our own, in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use crate::spare::{Ends, Newborn, Spare};
use crate::wire::Call;
use crate::zygote::{Nursery, Zygote};

/// What the stage's first argument is, by which [`crate::become_stage_if_asked`] knows it.
pub(crate) const STAGE_NAME: &str = "talon-jail-stage";

/// The seals of a memory file that nobody may change any more. Of the two seals against writing it is the one
/// about all writing to come: a file that was never mapped has no other. The older one waits for pages that the
/// kernel itself is holding for a moment, and gives up (EBUSY) when the machine is busy.
pub(crate) const SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE);

/// Sealed copy of our own image, made once when the supervisor starts.
///
/// A copy, so that an upgrade of the file on disk does not swap the stage under a running supervisor; sealed,
/// so that nothing can write to it. It costs the size of the executable in memory, once, for all stages.
///
/// The first program that is started in a jail has it executed once, as a small process of which every stage is a
/// clone. That one ends with this value.
#[derive(Debug)]
pub struct Stage {
    image: OwnedFd,
    // Before the process that it is a clone of.
    spare: Spare,
    nursery: Nursery,
}

/// Why there is no stage.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The image could not be read.
    #[error("cannot read our own executable: {0} (is /proc mounted?)")]
    Open(#[source] io::Error),
    /// Executable memory files are forbidden on this machine.
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

    /// Copies another executable, whose `main` must begin with [`crate::become_stage_if_asked`]: for tests,
    /// whose own `main` is the test harness's.
    pub fn from_image(mut image: File) -> Result<Self, StageError> {
        let mut copy = File::from(create()?);
        io::copy(&mut image, &mut copy).map_err(StageError::Copy)?;
        fcntl_add_seals(&copy, SEALS).map_err(|errno| StageError::Seal(errno.into()))?;
        Ok(Self { image: copy.into(), spare: Spare::default(), nursery: Nursery::default() })
    }

    /// Has a stage made that has these three descriptors and nothing else of ours; gives the zygote that was asked.
    pub(crate) fn start(
        &self,
        call: &Call,
        [control, stdout, stderr]: [OwnedFd; 3],
        deadline: Option<Instant>,
    ) -> io::Result<Arc<Zygote>> {
        let descriptors = [control.as_fd(), stdout.as_fd(), stderr.as_fd()];
        self.nursery.call(|| self.command(STAGE_NAME), call, &descriptors, deadline)
    }

    /// Has one stage made ahead from now on, whenever a program was started in a jail: for who starts many, or may have to start
    /// one again. It is one small process more.
    #[must_use]
    pub fn keeping_a_spare(self) -> Self {
        self.spare.keep();
        self
    }

    /// The stage that was made ahead, if there is one for such a call.
    pub(crate) fn spare(&self, call: &Call) -> Option<Newborn> {
        self.spare.take(call)
    }

    /// Has one made ahead for the next call like this, if that is wanted. Nobody waits for it, and that it cannot be had shows
    /// when somebody wants one.
    pub(crate) fn prepare(&self, call: &Call) {
        let Some(call) = self.spare.wants(call) else { return };
        let Ok((ends, theirs)) = Ends::make() else { return };
        if let Ok(zygote) = self.start(&call, theirs, Some(Instant::now())) {
            self.spare.put(call, Newborn { ends, zygote });
        }
    }

    /// Ends a zygote that did not do what it was asked for.
    pub(crate) fn discard(&self, zygote: &Arc<Zygote>) {
        self.nursery.discard(zygote);
    }

    /// The image under the name by which it knows what it is to be.
    pub(crate) fn command(&self, name: &str) -> Command {
        // Nothing here may take std off its posix_spawn path: no pre_exec, no uid, no groups, and a program
        // with a slash in it, since the environment is cleared.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.image.as_raw_fd()));
        command.arg0(name).env_clear();
        command
    }
}

/// An empty memory file that may be executed. Kernels before 6.3 do not know the flag that says so, and need none.
fn create() -> Result<OwnedFd, StageError> {
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
