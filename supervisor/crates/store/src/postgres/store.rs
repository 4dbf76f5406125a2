//! An open PostgreSQL database.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use deadpool_postgres::{GenericClient, Object, Pool, PoolError, TimeoutType, Transaction};
use tokio::sync::{Notify, OnceCell};

use super::circuit_breaker::CircuitBreaker;
use super::group_commit::GroupCommit;
use super::migrations::MIGRATIONS;
use super::pgvector::Pgvector;
use super::{error, schema, settings, timeouts};
use crate::counters::Counters;
use crate::error::Error;
use crate::migrate::latest;
use crate::open_error::OpenError;
use crate::options::StoreOptions;

/// A PostgreSQL server.
pub(crate) struct PostgresStore {
    pool: Pool,
    location: String,
    breaker: CircuitBreaker,
    /// Set when the schema was migrated to this version, once after the server was first reached.
    ready: OnceCell<()>,
    /// The extension, once it was looked for.
    pgvector: OnceCell<Option<Pgvector>>,
    pub(super) group_commit: GroupCommit,
    refused_for_room: Notify,
    writes: AtomicU64,
    commits: AtomicU64,
    /// For tasks that lead a group commit.
    pub(super) weak_self: Weak<Self>,
}

impl PostgresStore {
    pub(crate) async fn open(url: &str, open: &StoreOptions) -> Result<Arc<Self>, OpenError> {
        let (pool, place) = settings::pool(url, open.connections)?;
        let store = Arc::new_cyclic(|me| Self {
            pool,
            location: place,
            breaker: CircuitBreaker::default(),
            ready: OnceCell::new(),
            pgvector: OnceCell::new(),
            group_commit: GroupCommit::default(),
            refused_for_room: Notify::new(),
            writes: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            weak_self: Weak::clone(me),
        });
        match store.connect().await {
            Ok(_) => Ok(store),
            Err(OpenError::Store(Error::Unavailable { .. })) if open.even_if_unreachable => Ok(store),
            Err(error) => Err(error),
        }
    }

    /// A connection to a server with the current schema.
    async fn connect(&self) -> Result<Object, OpenError> {
        self.breaker.admit()?;
        let mut client = match self.pool.get().await {
            Ok(client) => client,
            Err(PoolError::Timeout(TimeoutType::Wait)) => return Err(Error::Busy(timeouts::MAX_WAIT).into()),
            Err(PoolError::Closed) => return Err(Error::Closed.into()),
            Err(error) => return Err(self.breaker.record_failure(&error::pool_message(&error)).into()),
        };
        if !self.ready.initialized() {
            let prepared = self.ready.get_or_try_init(|| schema::prepare(&mut client)).await;
            if let Err(error) = prepared {
                return Err(match error {
                    OpenError::Store(lost) => self.record_outage(lost).into(),
                    other => other,
                });
            }
        }
        self.breaker.record_success();
        Ok(client)
    }

    pub(super) async fn client(&self) -> Result<Object, Error> {
        self.connect().await.map_err(|error| match error {
            OpenError::Store(error) => error,
            other => Error::Engine(other.into()),
        })
    }

    /// The extension pgvector, if the database has it; looked for once.
    pub(super) async fn pgvector(&self, db: &impl GenericClient) -> Result<Option<&Pgvector>, Error> {
        Ok(self.pgvector.get_or_try_init(|| Pgvector::find(db)).await?.as_ref())
    }

    /// Opens the circuit breaker if the error says that the server is unreachable.
    fn record_outage(&self, error: Error) -> Error {
        match error {
            Error::Unavailable { reason, .. } => self.breaker.record_failure(&reason),
            Error::Full(_) => {
                self.refused_for_room.notify_one();
                error
            }
            other => other,
        }
    }

    /// Passes a result through. Problems with the server concern every call, so each error is inspected.
    pub(super) fn inspect_result<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| self.record_outage(error))
    }

    /// Commits. Only acknowledges what the server has on its disk.
    pub(super) async fn commit(&self, transaction: Transaction<'_>, writes: u64) -> Result<(), Error> {
        transaction.commit().await?;
        self.writes.fetch_add(writes, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn schema_version() -> u32 {
        latest(MIGRATIONS)
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            writes: self.writes.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
        }
    }

    pub(crate) async fn refused_for_room(&self) {
        self.refused_for_room.notified().await;
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        let client = self.client().await?;
        self.inspect_result(client.simple_query("SELECT 1").await.map(drop).map_err(Error::from))
    }

    /// A write that changes nothing: how much room a server has is not known here.
    pub(crate) async fn check_room(&self) -> Result<(), Error> {
        let client = self.client().await?;
        let sql = "UPDATE talon.plugins SET bytes = bytes WHERE id = (SELECT min(id) FROM talon.plugins)";
        self.inspect_result(client.execute(sql, &[]).await.map(drop).map_err(Error::from))
    }

    pub(crate) fn close(&self) {
        self.pool.close();
    }
}
