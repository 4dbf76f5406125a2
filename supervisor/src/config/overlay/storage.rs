//! The overlay's file, and that of its history: replaced as a whole, so that a crash leaves the old or the new one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::MAX_OVERLAY_BYTES;
use crate::config::regular_file::{self, OpenError};

/// Why the overlay cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error("{} cannot be written: {source}; see whether its disk is full or read-only", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} cannot be read: {message}; correct it or remove it", path.display())]
    Read { path: PathBuf, message: String },
}

/// The overlay's file.
#[derive(Debug, Clone)]
pub(crate) struct OverlayFile {
    path: PathBuf,
}

impl OverlayFile {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it says; empty if there is none.
    pub(crate) fn read(&self) -> Result<String, StorageError> {
        let wrong = |message: String| StorageError::Read { path: self.path.clone(), message };
        match regular_file::read(&self.path, MAX_OVERLAY_BYTES) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned())),
            Err(OpenError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Replaces it.
    pub(crate) fn write(&self, text: &str) -> Result<(), StorageError> {
        replace(&self.path, text.as_bytes())
    }
}

/// Replaces a file, durably.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let write = || {
        let directory = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let new = path.with_extension("new");
        // One of a write that was interrupted.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|source| StorageError::Write { path: path.to_owned(), source })
}
