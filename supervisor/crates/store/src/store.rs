//! An open store.

use std::path::Path;
use std::sync::Arc;

use crate::backup::{BackupInfo, POSTGRES_BACKUP, POSTGRES_RESTORE, Restored};
use crate::counters::Counters;
use crate::error::Error;
use crate::key_values::KeyValues;
use crate::memory::{Memory, MemoryVectors};
use crate::notification::Outbox;
use crate::open_error::OpenError;
use crate::options::{Engine, StoreOptions};
use crate::postgres::PostgresStore;
use crate::proposal::JobProposals;
use crate::schedule::Schedule;
use crate::session::Sessions;
use crate::sqlite::SqliteStore;

/// An open store. Clones share it.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
}

#[derive(Clone)]
enum Backend {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) async fn open(open: StoreOptions) -> Result<Self, OpenError> {
        let opened = match open.engine.clone() {
            Engine::Sqlite { path } => Backend::Sqlite(Arc::new(SqliteStore::open(path, open).await?)),
            Engine::Postgres { url } => Backend::Postgres(PostgresStore::open(&url, &open).await?),
        };
        Ok(Self { backend: opened })
    }

    /// The name of the engine: `sqlite` or `postgres`.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        match self.backend {
            Backend::Sqlite(_) => "sqlite",
            Backend::Postgres(_) => "postgres",
        }
    }

    /// The schema version that this program works with. An open database has it.
    #[must_use]
    pub fn schema_version(&self) -> u32 {
        match self.backend {
            Backend::Sqlite(_) => SqliteStore::schema_version(),
            Backend::Postgres(_) => PostgresStore::schema_version(),
        }
    }

    /// Where the state is stored: a file, or `host:port/database` without secrets.
    #[must_use]
    pub fn location(&self) -> String {
        match &self.backend {
            Backend::Sqlite(store) => store.path().display().to_string(),
            Backend::Postgres(store) => store.location().to_owned(),
        }
    }

    /// Copies a snapshot of the whole store to a new file of mode 0600, while others may write. The copy is
    /// checked and on the disk before it gets its name. Dropping the future cancels the backup; a process
    /// that is killed leaves at most an unfinished `<to>.new-*`.
    ///
    /// # Errors
    /// [`Error::File`] if there is a file of that name already or none can be created, [`Error::Full`],
    /// [`Error::Corrupt`], and [`Error::Unsupported`] for PostgreSQL.
    pub async fn backup(&self, to: &Path) -> Result<BackupInfo, Error> {
        match &self.backend {
            Backend::Sqlite(store) => store.backup(to).await,
            Backend::Postgres(_) => Err(Error::Unsupported(POSTGRES_BACKUP)),
        }
    }

    /// Replaces the contents of the store by the copy at `from`, while it is open. `check_only` only checks
    /// whether that is possible, and changes nothing. First the copy is checked completely and migrated to
    /// this schema, in a copy of the copy. The replaced database is kept beside the current one as
    /// `<file>.before-restore-<time>`; the last three such files are kept. It is one transaction: readers see
    /// the old or the new contents, and an interruption leaves the old. Other writes wait meanwhile. Once the
    /// replacing has begun, dropping the future does not stop it.
    ///
    /// # Errors
    /// [`Error::BadCopy`] with what is wrong with the copy, [`Error::Full`], [`Error::File`],
    /// [`Error::Busy`], and [`Error::Unsupported`] for PostgreSQL. Nothing was changed then.
    pub async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        match &self.backend {
            Backend::Sqlite(store) => store.restore(from, check_only).await,
            Backend::Postgres(_) => Err(Error::Unsupported(POSTGRES_RESTORE)),
        }
    }

    /// The plugins' key-values.
    #[must_use]
    pub fn key_values(&self) -> Arc<dyn KeyValues> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The conversations.
    #[must_use]
    pub fn sessions(&self) -> Arc<dyn Sessions> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The memories.
    #[must_use]
    pub fn memory(&self) -> Arc<dyn Memory> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The memories' vectors.
    #[must_use]
    pub fn memory_vectors(&self) -> Arc<dyn MemoryVectors> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The schedule.
    #[must_use]
    pub fn schedule(&self) -> Arc<dyn Schedule> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The jobs that plugins propose.
    #[must_use]
    pub fn job_proposals(&self) -> Arc<dyn JobProposals> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The notifications that are to be delivered.
    #[must_use]
    pub fn outbox(&self) -> Arc<dyn Outbox> {
        match &self.backend {
            Backend::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Backend::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// How many writes there were so far, and in how many commits.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match &self.backend {
            Backend::Sqlite(store) => store.counters(),
            Backend::Postgres(store) => store.counters(),
        }
    }

    /// Checks whether the database answers.
    ///
    /// # Errors
    /// The error that any call would get now, such as [`Error::Unavailable`].
    pub async fn check(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Sqlite(store) => store.check().await,
            Backend::Postgres(store) => store.check().await,
        }
    }

    /// Resolves when a write was refused with [`Error::Full`] since this resolved last, whoever asked for it.
    /// For one caller: of several, one is notified.
    pub async fn refused_for_room(&self) {
        match &self.backend {
            Backend::Sqlite(store) => store.refused_for_room().await,
            Backend::Postgres(store) => store.refused_for_room().await,
        }
    }

    /// Checks whether the database takes writes again that it refused with [`Error::Full`]: there is room for
    /// the largest value, or for a sixteenth of a disk or limit that is small, and a write succeeds that
    /// changes nothing.
    ///
    /// # Errors
    /// [`Error::Full`], or the error that any write would get now.
    pub async fn check_room(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Sqlite(store) => store.check_room().await,
            Backend::Postgres(store) => store.check_room().await,
        }
    }

    /// Closes the store. When this returns, pending work is finished, files are closed and the lock is
    /// released. Later calls get [`Error::Closed`]. A store that is only dropped is closed a moment later.
    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(store) => store.close().await,
            Backend::Postgres(store) => store.close(),
        }
    }
}
