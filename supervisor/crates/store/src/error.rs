//! What can go wrong: [`Error`] of an operation, [`OpenError`](crate::OpenError) of the start.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::id::{PluginId, SessionId};
use crate::open::OpenError;

/// Why an operation failed. Nothing of a failed operation is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked cannot be, whatever is in the store.
    #[error("{what} {why}")]
    Invalid {
        /// Which part of the request, as the beginning of a sentence.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A plugin has as much as it may have.
    #[error("the quota of `{plugin}` is used up: {used} of {limit} {resource}, and {wanted} are wanted")]
    Quota {
        /// Whose quota.
        plugin: PluginId,
        /// What there is too much of.
        resource: Resource,
        /// How much there is.
        used: u64,
        /// How much there may be.
        limit: u64,
        /// How much there would be.
        wanted: u64,
    },
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// There is such a session already, with other contents.
    #[error("there is another session {0} already")]
    SessionExists(SessionId),
    /// Somebody else wrote to the session in between.
    #[error("session {session} goes on at message {next}, not {expected}: somebody else wrote to it")]
    OutOfSequence {
        /// Which session.
        session: SessionId,
        /// The sequence number that the caller thought was next.
        expected: u64,
        /// The one that is.
        next: u64,
    },
    /// There is no room on the disk or below the configured size. Writing works again as soon as there is.
    #[error("there is no room for the store: free some space where it lies, or raise its limit")]
    Full(#[source] Source),
    /// Another process held the database for too long.
    #[error("the store is busy: another process held it for {0:?}")]
    Busy(Duration),
    /// The database server cannot be reached. The store tries again by itself.
    #[error("the database server cannot be reached; the next attempt is in {retry_in:?}: {reason}")]
    Unavailable {
        /// What the last attempt said.
        reason: String,
        /// Until then, calls fail at once.
        retry_in: Duration,
    },
    /// The database is damaged.
    #[error("the database is damaged; restore a backup")]
    Corrupt(#[source] Source),
    /// What is in the database is not what this version writes.
    #[error("the database holds a {what} that cannot be read: {why}")]
    Unreadable {
        /// What kind of thing.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A copy cannot take the place of the database.
    #[error("{path} cannot be restored: {why}. Nothing was changed", path = .path.display())]
    BadCopy {
        /// The copy.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of a backup or a restore cannot be made, read or written.
    #[error("{path}: {doing}", path = .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// This engine has other means for that: which.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The store was closed, or its thread ended.
    #[error("the store is closed")]
    Closed,
    /// The engine failed in a way that has no name here.
    #[error("the database failed")]
    Engine(#[source] Source),
}

/// What an engine itself said.
pub type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Bytes of keys and values.
    Bytes,
    /// Keys.
    Keys,
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Keys => "keys",
        })
    }
}

impl Error {
    pub(crate) fn invalid(what: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { what, why: why.into() }
    }

    pub(crate) fn unreadable(what: &'static str, why: impl std::fmt::Display) -> Self {
        Self::Unreadable { what, why: why.to_string() }
    }

    pub(crate) fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(source.into()),
            _ => Self::File { path, doing, source },
        }
    }

    /// Whether the same request may succeed a little later without anybody changing it.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Busy(_) | Self::Unavailable { .. })
    }
}

/// What could not be opened on the way of something else.
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
