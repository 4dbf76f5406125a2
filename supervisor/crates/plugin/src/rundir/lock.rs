//! A lock that the kernel releases when its process ends, for whatever reason.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How much of a lock file is read: a pid.
const MAX_PID_BYTES: u64 = 32;

/// A locked file. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct DirLock {
    file: File,
}

/// Why a lock could not be acquired.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process holds it.
    Held {
        /// Its pid, according to the file.
        holder: Option<u32>,
    },
    /// The file cannot be used.
    Io(io::Error),
}

impl DirLock {
    /// Acquires the lock without waiting, and writes our pid into its file.
    pub(crate) fn acquire(path: &Path) -> Result<Self, LockError> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(LockError::Io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = io::Read::by_ref(&mut file).take(MAX_PID_BYTES).read_to_string(&mut text);
                return Err(LockError::Held { holder: text.trim().parse().ok() });
            }
            Err(error) => return Err(LockError::Io(error.into())),
        }
        Ok(Self::with_pid_written(file))
    }

    /// Takes over a lock from another process of ours. Both share the open file, so the lock is held without
    /// interruption. If the descriptor is not the lock of this path, that lock is acquired instead.
    pub(crate) fn take_over(path: &Path, lock: OwnedFd) -> Result<Self, LockError> {
        let file = File::from(lock);
        let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let there = rustix::fs::lstat(path).map(place);
        if there.is_err() || there != rustix::fs::fstat(&file).map(place) {
            return Self::acquire(path);
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self::with_pid_written(file)),
            Err(Errno::WOULDBLOCK) => Err(LockError::Held { holder: None }),
            Err(error) => Err(LockError::Io(error.into())),
        }
    }

    fn with_pid_written(mut file: File) -> Self {
        // The pid is informational. A full disk must not prevent a start.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = writeln!(file, "{}", std::process::id());
        Self { file }
    }

    /// A duplicate for another process. The lock is held as long as one of the two is open.
    pub(crate) fn duplicate_fd(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}
