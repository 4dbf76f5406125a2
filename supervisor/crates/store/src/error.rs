//! Errors: [`Error`] of an operation, [`OpenError`](crate::OpenError) of opening a store.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::id::{PluginId, SessionId};
use crate::invalid::InvalidError;

/// Why an operation failed. A failed operation changes nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid, whatever is in the store.
    #[error(transparent)]
    Invalid(#[from] InvalidError),
    /// A plugin would exceed its quota.
    #[error("the quota of `{plugin}` is used up: {used} of {limit} {resource}, and {wanted} are wanted")]
    Quota {
        /// The plugin.
        plugin: PluginId,
        /// The exceeded resource.
        resource: Resource,
        /// The current usage.
        used: u64,
        /// The limit.
        limit: u64,
        /// The usage after the operation.
        wanted: u64,
    },
    /// The session does not exist.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// The session exists already, with other contents.
    #[error("there is another session {0} already")]
    SessionExists(SessionId),
    /// The session has a message of this key already.
    #[error("session {session} has a message {key:?} already")]
    KeyExists {
        /// The session.
        session: SessionId,
        /// The key.
        key: String,
    },
    /// Another writer wrote to the session in between.
    #[error("the next message of session {session} is {next}, not {expected}: another writer wrote to it")]
    OutOfSequence {
        /// The session.
        session: SessionId,
        /// The sequence number that the caller thought was next.
        expected: u64,
        /// The actual one.
        next: u64,
    },
    /// The disk or the configured size is full. Writing works again as soon as there is room.
    #[error("there is no room for the store: free some space where it lies, or raise its limit")]
    Full(#[source] Source),
    /// Another process held the database for too long.
    #[error("the store is busy: another process held it for {0:?}")]
    Busy(Duration),
    /// The database server cannot be reached. The store retries without being asked.
    #[error("the database server cannot be reached; the next attempt is in {retry_in:?}: {reason}")]
    Unavailable {
        /// The error of the last attempt.
        reason: String,
        /// How long calls fail at once.
        retry_in: Duration,
    },
    /// The database is damaged.
    #[error("the database is damaged; restore a backup")]
    Corrupt(#[source] Source),
    /// The database contains something that this version does not write.
    #[error("the database holds a {what} that cannot be read: {why}")]
    Unreadable {
        /// The kind of object.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A copy cannot replace the database.
    #[error("{path} cannot be restored: {why}. Nothing was changed", path = .path.display())]
    BadCopy {
        /// The copy.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of a backup or a restore cannot be created, read or written.
    #[error("{path}: {doing}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The attempted operation.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// This engine does not support the operation; the text names the alternative.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The store was closed, or its thread ended.
    #[error("the store is closed")]
    Closed,
    /// Any other failure of the engine.
    #[error("the database failed")]
    Engine(#[source] Source),
}

/// An engine's own error.
pub type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What a quota limits.
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
        Self::Invalid(InvalidError::new(what, why))
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

    /// Whether the same request may succeed a little later, without any intervention.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Busy(_) | Self::Unavailable { .. })
    }
}
