//! Why a store could not be opened.

use std::path::{Path, PathBuf};

use crate::error::{Error, Source};

/// Why a store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The linked SQLite is one that can lose what it has committed.
    #[error(
        "SQLite {found} can lose committed writes; {needed} or newer is needed: build Talon with its own SQLite"
    )]
    OldSqlite {
        /// The linked version.
        found: &'static str,
        /// The required version.
        needed: &'static str,
    },
    /// The directory or the file is owned by another user.
    #[error("{path} belongs to user {owner}, and this is user {us}; give it over with:  chown -R {us} {path}", path = .path.display())]
    NotOurs {
        /// The directory of the database, or the database.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Our own uid.
        us: u32,
    },
    /// Other users have access to the files.
    #[error("{directory} is open to other users (mode {mode:o}); close it with:  chmod 700 {directory}", directory = .directory.display())]
    Exposed {
        /// The directory of the database.
        directory: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Another process, or another store of this one, has the database.
    #[error("{path} is in use{by}; stop that first", path = .path.display(), by = held_by(.holder.as_ref()))]
    InUse {
        /// The database.
        path: PathBuf,
        /// The process that has it, if that is visible.
        holder: Option<Holder>,
    },
    /// The file is damaged, truncated, or not a database at all.
    #[error(
        "{path} is damaged: {detail}. It was left as it is: restore a backup of it (`talon restore`), or move it away to begin without any state",
        path = .path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The file is a database of another program.
    #[error("{path} is a database of another program; give Talon a separate path", path = .path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// A newer version of Talon wrote it.
    #[error(
        "{place} has schema version {found}, and this Talon knows {known}: use the newer Talon that wrote it, or restore a backup from before"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its version.
        found: u32,
        /// The latest version that this program knows.
        known: u32,
    },
    /// The address or the server cannot be used.
    #[error("the PostgreSQL server cannot be used: {0}")]
    Server(String),
    /// A file or directory cannot be created, read or locked.
    #[error("{path}: {doing}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The attempted operation.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The database failed.
    #[error("the database cannot be opened")]
    Engine(#[source] Source),
    /// The database cannot be used now, though it may be later.
    #[error(transparent)]
    Store(#[from] Error),
}

impl OpenError {
    pub(crate) fn file(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, doing, source }
    }
}

/// A process that holds a database's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its pid.
    pub pid: u32,
    /// Its name, if visible.
    pub name: Option<String>,
}

fn held_by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |Holder { pid, name }| match name {
        Some(name) => format!(" by {name} (process {pid})"),
        None => format!(" by process {pid}"),
    })
}

/// Converts an error of opening a file within another operation.
impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error,
            OpenError::Engine(source) => Self::Engine(source),
            damaged @ OpenError::Damaged { .. } => Self::Corrupt(damaged.into()),
            other => Self::Engine(other.into()),
        }
    }
}
