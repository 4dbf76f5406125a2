//! The results of copying a whole store and of restoring such a copy.

use std::path::PathBuf;

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

/// How a PostgreSQL database is backed up instead: the text of
/// [`Error::Unsupported`](crate::Error::Unsupported).
pub const POSTGRES_BACKUP: &str = "a PostgreSQL database is backed up by its own means:  pg_dump --format=custom --schema=talon --file=FILE DATABASE";
/// The same for a restore.
pub const POSTGRES_RESTORE: &str = "a PostgreSQL database is restored by its own means:  pg_restore --clean --if-exists --single-transaction --dbname=DATABASE FILE";
