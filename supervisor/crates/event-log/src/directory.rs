//! The directory of a log, its lock, and the names of its segments.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fsync, openat, unlinkat};

/// Only the owner may read what happened.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Digits of a segment's first number: those of the largest, so that names sort as numbers do.
const DIGITS: usize = 20;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it open.
    #[error("another process writes to {}: end it first", .0.display())]
    Busy(PathBuf),
    /// A step failed.
    #[error("cannot use {}: {source}; check its owner and mode, and whether there is room", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The name of the segment whose first event has this number.
pub(crate) fn segment_name(first: u64) -> String {
    format!("events-{first:0DIGITS$}.log")
}

fn first_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("events-")?.strip_suffix(".log")?;
    (digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

/// A log's directory, locked against other writers while this is open.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    fd: OwnedFd,
}

impl Directory {
    /// Creates the directory if it is missing, within one that exists, and takes the lock.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |source: io::Error| OpenError::Io { path: path.to_owned(), source };
        match std::fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        // Two writers would give numbers twice. The kernel releases the lock when the process ends, however it ends.
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), fd }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::Busy(path.to_owned())),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// The first numbers of its segments, in ascending order.
    pub(crate) fn segments(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            found.extend(entry?.file_name().to_str().and_then(first_number));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Creates a segment, which must not exist yet.
    pub(crate) fn create(&self, first: u64) -> io::Result<File> {
        let file = self.at(first, OFlags::CREATE | OFlags::EXCL)?;
        fsync(&self.fd)?;
        Ok(file)
    }

    pub(crate) fn open_segment(&self, first: u64) -> io::Result<File> {
        self.at(first, OFlags::empty())
    }

    fn at(&self, first: u64, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(openat(&self.fd, segment_name(first), flags, Mode::from_raw_mode(FILE_MODE))?.into())
    }

    /// Removes a segment; one that is gone already is no error.
    pub(crate) fn remove(&self, first: u64) -> io::Result<()> {
        match unlinkat(&self.fd, segment_name(first), AtFlags::empty()) {
            Err(error) if error != rustix::io::Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }
}
