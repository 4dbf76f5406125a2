//! Copies of a whole store: made while it is in use, and put back.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::open::{Engine, Open, OpenError};
use crate::sqlite::ClosedSqlite;

/// A backup that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupInfo {
    /// The version of its schema.
    pub schema_version: u32,
    /// The size of its file.
    pub bytes: u64,
}

/// A copy that was restored, or that can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The version of the schema after the restore: the latest.
    pub schema_version: u32,
    /// The version of the copy's schema. An older one is brought forward, in a copy of the copy.
    pub copy_version: u32,
    /// The size of the restored database.
    pub bytes: u64,
    /// Where that is now which was there before; `None` if the copy was only checked, or nothing was there.
    pub kept: Option<PathBuf>,
}

/// The place of a store that cannot be opened, since its file is damaged, too new or another program's: all that can be
/// done there is to restore a copy. Nobody else opens it meanwhile.
///
/// A store that can be opened is restored by [`Store::restore`](crate::Store::restore), while it is in use.
#[derive(Debug)]
pub struct OpenedForRestore(ClosedSqlite);

impl OpenedForRestore {
    pub(crate) async fn open(open: Open) -> Result<Self, OpenError> {
        let Engine::Sqlite { path } = open.engine.clone() else {
            return Err(Error::Unsupported(POSTGRES_RESTORE).into());
        };
        let opened = tokio::task::spawn_blocking(move || ClosedSqlite::open(path, open)).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Engine(panic.into()))).map(Self)
    }

    /// Puts the copy at `from` in the place of the unusable file, which is kept beside it with its log, as
    /// `<file>.damaged-<time>`; `check_only` looks whether the copy could be restored and leaves everything as it is. When
    /// this is dropped afterwards, the store can be opened. What is interrupted, at whatever moment, leaves a file that
    /// still is refused: it is never replaced by an empty database.
    ///
    /// # Errors
    /// [`Error::BadCopy`], [`Error::Full`], [`Error::File`], [`Error::Busy`].
    pub async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        self.0.restore(from, check_only).await
    }
}

/// How a PostgreSQL database is backed up instead: what [`Error::Unsupported`] says.
pub const POSTGRES_BACKUP: &str = "a PostgreSQL database is backed up by its own means:  pg_dump --format=custom --schema=talon --file=FILE DATABASE";
/// The same for the way back.
pub const POSTGRES_RESTORE: &str = "a PostgreSQL database is restored by its own means:  pg_restore --clean --if-exists --single-transaction --dbname=DATABASE FILE";
