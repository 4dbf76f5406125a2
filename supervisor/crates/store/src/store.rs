//! An open store.

use std::sync::Arc;

use crate::error::Error;
use crate::key_values::KeyValues;
use crate::memory::Memory;
use crate::open::{Engine, Open, OpenError};
use crate::postgres::PostgresStore;
use crate::session::Sessions;
use crate::sqlite::SqliteStore;

/// An open store. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    opened: Opened,
}

#[derive(Clone)]
enum Opened {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) async fn open(open: Open) -> Result<Self, OpenError> {
        let opened = match open.engine.clone() {
            Engine::Sqlite { path } => Opened::Sqlite(Arc::new(SqliteStore::open(path, open).await?)),
            Engine::Postgres { url } => Opened::Postgres(PostgresStore::open(&url, &open).await?),
        };
        Ok(Self { opened })
    }

    /// Which engine this is: `sqlite` or `postgres`.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        match self.opened {
            Opened::Sqlite(_) => "sqlite",
            Opened::Postgres(_) => "postgres",
        }
    }

    /// The plugins' key-values.
    #[must_use]
    pub fn key_values(&self) -> Arc<dyn KeyValues> {
        match &self.opened {
            Opened::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Opened::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The conversations.
    #[must_use]
    pub fn sessions(&self) -> Arc<dyn Sessions> {
        match &self.opened {
            Opened::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Opened::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// The memories.
    #[must_use]
    pub fn memory(&self) -> Arc<dyn Memory> {
        match &self.opened {
            Opened::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Opened::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// What was written so far, and in how many commits.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match &self.opened {
            Opened::Sqlite(store) => store.counters(),
            Opened::Postgres(store) => store.counters(),
        }
    }

    /// Looks whether the database answers.
    ///
    /// # Errors
    /// What any call would get now, such as [`Error::Unavailable`].
    pub async fn check(&self) -> Result<(), Error> {
        match &self.opened {
            Opened::Sqlite(store) => store.check().await,
            Opened::Postgres(store) => store.check().await,
        }
    }

    /// Ends the store: what was begun is finished, files are closed and the lock is released when this returns. Later
    /// calls get [`Error::Closed`]. A store that is only dropped ends a moment later.
    pub async fn close(&self) {
        match &self.opened {
            Opened::Sqlite(store) => store.close().await,
            Opened::Postgres(store) => store.close(),
        }
    }
}

/// How often was written since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes that succeeded.
    pub writes: u64,
    /// Commits they took. Each is one fsync.
    pub commits: u64,
}
