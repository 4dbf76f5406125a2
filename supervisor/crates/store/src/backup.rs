//! Copies a whole store while it is in use, and restores such copies.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::open::{Engine, OpenError, StoreOptions};
use crate::sqlite::ClosedSqlite;

/// A backup that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupInfo {
    /// The version of its schema.
    pub schema_version: u32,
    /// The size of its file.
    pub bytes: u64,
}

/// A copy that was restored, or that could be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The version of the schema after the restore: the latest.
    pub schema_version: u32,
    /// The version of the copy's schema. An older one is migrated, in a copy of the copy.
    pub copy_version: u32,
    /// The size of the restored database.
    pub bytes: u64,
    /// Where the replaced database is kept; `None` if the copy was only checked, or nothing was replaced.
    pub kept: Option<PathBuf>,
}

/// The path of a store that cannot be opened, since its file is damaged, too new or another program's. All that can be
/// done there is to restore a copy. It is locked against other processes meanwhile.
///
/// A store that can be opened is restored by [`Store::restore`](crate::Store::restore), while it is in use.
#[derive(Debug)]
pub struct OpenedForRestore(ClosedSqlite);

impl OpenedForRestore {
    pub(crate) async fn open(open: StoreOptions) -> Result<Self, OpenError> {
        let Engine::Sqlite { path } = open.engine.clone() else {
            return Err(Error::Unsupported(POSTGRES_RESTORE).into());
        };
        let opened = tokio::task::spawn_blocking(move || ClosedSqlite::open(path, open)).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Engine(panic.into()))).map(Self)
    }

    /// Replaces the unusable file by the copy at `from`. The unusable file is kept beside it with its log, as
    /// `<file>.damaged-<time>`. `check_only` only checks whether the copy could be restored, and changes nothing. When
    /// this is dropped afterwards, the store can be opened. An interruption at any moment leaves a file that is still
    /// refused: it is never replaced by an empty database.
    ///
    /// # Errors
    /// [`Error::BadCopy`], [`Error::Full`], [`Error::File`], [`Error::Busy`].
    pub async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        self.0.restore(from, check_only).await
    }
}

/// How a PostgreSQL database is backed up instead: the text of [`Error::Unsupported`].
pub const POSTGRES_BACKUP: &str = "a PostgreSQL database is backed up by its own means:  pg_dump --format=custom --schema=talon --file=FILE DATABASE";
/// The same for a restore.
pub const POSTGRES_RESTORE: &str = "a PostgreSQL database is restored by its own means:  pg_restore --clean --if-exists --single-transaction --dbname=DATABASE FILE";
