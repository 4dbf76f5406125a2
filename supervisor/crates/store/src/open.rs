//! Options for opening a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::backup::OpenedForRestore;
use crate::error::{Error, Source};
use crate::store::Store;

/// How many reads run at once. SQLite's readers do not block others, but each needs a thread while it runs.
const DEFAULT_READERS: usize = 4;
/// How many connections to PostgreSQL are held at most. Its own default limit is 100 in total.
const DEFAULT_CONNECTIONS: usize = 8;
/// How long a writer waits for another process that writes to the same file. Transactions here take milliseconds; a
/// process that holds the file this long is stopped or hangs.
const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The engine, and where its data is.
#[derive(Clone)]
#[non_exhaustive]
pub enum Engine {
    /// A file, with a few others beside it. Only the store's own user may have access to the directory.
    Sqlite {
        /// The file. It is created if it does not exist, its directory too.
        path: PathBuf,
    },
    /// A PostgreSQL server that several machines can share.
    Postgres {
        /// `postgresql://user:password@host/database`, or the `key=value` form.
        ///
        /// `sslmode=verify-full` uses TLS, and refuses a server whose certificate is not for this host or not from an
        /// authority in `sslrootcert=FILE` (PEM), or, without that, one that the system trusts. `sslmode=require` means
        /// the same here: unlike libpq, nothing is encrypted for an unverified server. With `disable`, `prefer` or none
        /// there is no TLS, and only `disable` allows another machine.
        url: String,
    },
}

impl fmt::Debug for Engine {
    /// Omits the address of a server, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => f.debug_struct("Sqlite").field("path", path).finish(),
            Self::Postgres { .. } => f.debug_struct("Postgres").finish_non_exhaustive(),
        }
    }
}

/// The settings of a store that is about to be opened.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use talon_store::{Engine, Key, Namespace, Open, PluginId};
///
/// let store = Open::new(Engine::Sqlite { path: "/var/lib/talon/state.db".into() }).exclusive().open().await?;
/// let hello = Namespace::of(PluginId::new("hello")?);
/// store.key_values().set(&hello, &Key::new("visits")?, b"1".to_vec()).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct StoreOptions {
    pub(crate) engine: Engine,
    pub(crate) exclusive: bool,
    pub(crate) readers: usize,
    pub(crate) connections: usize,
    pub(crate) busy_timeout: Duration,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) even_if_unreachable: bool,
}

impl StoreOptions {
    /// Starts from the default settings.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            exclusive: false,
            readers: DEFAULT_READERS,
            connections: DEFAULT_CONNECTIONS,
            busy_timeout: DEFAULT_BUSY_TIMEOUT,
            max_bytes: None,
            even_if_unreachable: false,
        }
    }

    /// Refuses to share the file with another process, and with another store of this one. Has no effect on PostgreSQL,
    /// which is meant to be shared.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// How many reads run at once in SQLite.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// How many connections to PostgreSQL are held at most.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// How long a writer waits for another process that writes to the same SQLite file.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// How large the SQLite file may become; beyond it, writes get [`Error::Full`]. Otherwise the disk is the limit.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Also opens if the PostgreSQL server cannot be reached: calls get [`Error::Unavailable`] until it can.
    #[must_use]
    pub fn even_if_unreachable(mut self) -> Self {
        self.even_if_unreachable = true;
        self
    }

    /// Opens the store, and brings its schema to this version.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(self) -> Result<Store, OpenError> {
        Store::open(self).await
    }

    /// Opens a store for a restore only, after [`Open::open`] refused it as [`OpenError::Damaged`],
    /// [`OpenError::Foreign`] or [`OpenError::Newer`]. It is locked against others meanwhile, as with
    /// [`Open::exclusive`].
    ///
    /// # Errors
    /// See [`OpenError`]. PostgreSQL does not support this: [`Error::Unsupported`].
    pub async fn open_for_restore(self) -> Result<OpenedForRestore, OpenError> {
        OpenedForRestore::open(self).await
    }
}

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
