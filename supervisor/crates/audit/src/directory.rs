//! The directory of a log, and the names of its files.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fsync, openat, unlinkat};

/// Only the owner may read what callers asked tools for.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Digits of a file's number: names sort in number order up to a million million files.
const DIGITS: usize = 12;
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
        // Two writers would fork the chain. The kernel releases the lock when the process ends, however it ends.
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

    /// The numbers of its files, in ascending order.
    pub(crate) fn numbers(&self) -> io::Result<Vec<u64>> {
        let files = files_of(&self.path)?;
        let name = |path: &PathBuf| path.file_name()?.to_str().and_then(number_of);
        Ok(files.iter().filter_map(name).collect())
    }

    /// Creates a new file, which must not exist yet.
    pub(crate) fn create(&self, number: u64) -> io::Result<File> {
        let file = self.at(number, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
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
