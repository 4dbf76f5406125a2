//! The directory of a log, and the names of its files.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, fstat, fsync, openat,
    statat, unlinkat,
};

/// Only the owner may read what callers asked tools for.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Digits of a file's number: names sort in number order up to a million million files.
const DIGITS: usize = 12;
/// The size of the reserve: one block of any usual file system. The last two records take some 500 bytes.
const RESERVE_BYTES: u64 = 4096;
/// The name of the reserve; not one of a file of the log.
const RESERVE_NAME: &str = ".reserve";
/// The mode bits that let others than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The name of a file of the log.
pub(crate) fn file_name(number: u64) -> String {
    format!("audit-{number:0DIGITS$}.jsonl")
}

/// Whether a file of this name is one of the log.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    number_of(name).is_some()
}

pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    (digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

/// The files of a log, oldest first.
///
/// # Errors
/// The error of reading the directory.
pub fn files_of(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_file_name) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Why a log's directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("another process writes to it")]
    Busy,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A log's directory, locked against other writers while this is open.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    fd: OwnedFd,
}

impl Directory {
    /// Creates the directory if it is missing, and takes the lock.
    pub(crate) fn open(path: &Path) -> Result<Self, DirectoryError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match std::fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(io::Error::from)?;
        // Two writers would fork the chain. The kernel releases the lock when the process ends, however it
        // ends.
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), fd }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(DirectoryError::Busy),
            Err(error) => Err(DirectoryError::Io(error.into())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether others than its owner may create or delete files here.
    pub(crate) fn is_open_to_others(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|about| about.mode() & WRITABLE_BY_OTHERS != 0)
    }

    /// Whether its path still leads to it: it was not removed or renamed.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        let own = fstat(&self.fd)?;
        match std::fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.st_dev, own.st_ino)),
            Err(error) => {
                // A path that may not be looked at any more says nothing about the directory.
                Ok(!matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
            }
        }
    }

    /// Whether this file is the one with this number.
    pub(crate) fn contains(&self, number: u64, file: &File) -> io::Result<bool> {
        let own = file.metadata()?;
        match statat(&self.fd, file_name(number), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok((found.st_dev, found.st_ino) == (own.dev(), own.ino())),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reserves room on the disk for the last records, which have to be written even if the disk is full by
    /// then.
    pub(crate) fn reserve(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(&self.fd, RESERVE_NAME, flags, Mode::from_raw_mode(FILE_MODE))?;
        Ok(fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)?)
    }

    /// Releases the reserve.
    pub(crate) fn release_reserve(&self) -> io::Result<()> {
        Ok(unlinkat(&self.fd, RESERVE_NAME, AtFlags::empty())?)
    }

    /// The numbers of its files, in ascending order.
    pub(crate) fn numbers(&self) -> io::Result<Vec<u64>> {
        let files = files_of(&self.path)?;
        let name = |path: &PathBuf| path.file_name()?.to_str().and_then(number_of);
        Ok(files.iter().filter_map(name).collect())
    }

    /// Creates a new file, which must not exist yet.
    pub(crate) fn create(&self, number: u64) -> io::Result<File> {
        let file = self.at(number, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)?;
        fsync(&self.fd)?;
        Ok(file)
    }

    pub(crate) fn open_to_append(&self, number: u64) -> io::Result<File> {
        self.at(number, OFlags::RDWR | OFlags::APPEND)
    }

    fn at(&self, number: u64, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(openat(&self.fd, file_name(number), flags, Mode::from_raw_mode(FILE_MODE))?.into())
    }

    pub(crate) fn remove(&self, number: u64) -> io::Result<()> {
        Ok(unlinkat(&self.fd, file_name(number), AtFlags::empty())?)
    }
}
