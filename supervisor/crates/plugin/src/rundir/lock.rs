//! A lock that ends with its process, whatever ends that.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How much of a lock file is read: a pid.
const MAX_PID_BYTES: u64 = 32;

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub(crate) struct DirLock {
    file: File,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody else holds it.
    Held {
        /// Who, as the file says.
        holder: Option<u32>,
    },
    /// The file cannot be used.
    Io(io::Error),
}

impl DirLock {
    /// Takes the lock without waiting, and writes our pid into its file.
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
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
        Ok(Self::held(file))
    }

    /// Goes on with a lock that another process of ours held: the same open file, so that at no time it is anybody else's. If it is
    /// not the lock of this path, that one is taken.
    pub(crate) fn take_over(path: &Path, lock: OwnedFd) -> Result<Self, LockError> {
        let file = File::from(lock);
        let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let there = rustix::fs::lstat(path).map(place);
        if there.is_err() || there != rustix::fs::fstat(&file).map(place) {
            return Self::take(path);
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self::held(file)),
            Err(Errno::WOULDBLOCK) => Err(LockError::Held { holder: None }),
            Err(error) => Err(LockError::Io(error.into())),
        }
    }

    fn held(mut file: File) -> Self {
        // The pid is for people. A disk too full for it is no reason not to run.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = writeln!(file, "{}", std::process::id());
        Self { file }
    }

    /// A duplicate, with which another process can go on; who has it holds the lock, too.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}
