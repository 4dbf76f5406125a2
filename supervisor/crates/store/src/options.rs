//! Which store to open, and how.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How many reads run at once. SQLite's readers do not block others, but each needs a thread while it runs.
const DEFAULT_READERS: usize = 4;
/// How many connections to PostgreSQL are held at most. Its own default limit is 100 in total.
const DEFAULT_CONNECTIONS: usize = 8;
/// How long a writer waits for another process that writes to the same file. Transactions here take
/// milliseconds; a process that holds the file this long is stopped or hangs.
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
        /// `sslmode=verify-full` uses TLS, and refuses a server whose certificate is not for this host or not
        /// from an authority in `sslrootcert=FILE` (PEM), or, without that, one that the system trusts.
        /// `sslmode=require` means the same here: unlike libpq, nothing is encrypted for an unverified
        /// server. With `disable`, `prefer` or none there is no TLS, and only `disable` allows another
        /// machine.
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
/// use talon_store::{Engine, Key, Namespace, PluginId, StoreOptions};
///
/// let store = StoreOptions::new(Engine::Sqlite { path: "/var/lib/talon/state.db".into() }).exclusive().open().await?;
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
    pub(crate) examined: bool,
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
            examined: false,
        }
    }

    /// Refuses to share the file with another process, and with another store of this one. Has no effect on
    /// PostgreSQL, which is meant to be shared.
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

    /// How large the SQLite file may become; beyond it, writes get [`Error::Full`](crate::Error::Full).
    /// Otherwise the disk is the limit.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Also opens if the PostgreSQL server cannot be reached: calls get
    /// [`Error::Unavailable`](crate::Error::Unavailable) until it can.
    #[must_use]
    pub fn even_if_unreachable(mut self) -> Self {
        self.even_if_unreachable = true;
        self
    }

    /// Examines a SQLite file for a moment only, instead of up to five seconds: clients wait, and the file
    /// was examined when it was opened a while ago.
    #[must_use]
    pub fn examined(mut self) -> Self {
        self.examined = true;
        self
    }
}
