//! SQLite: one file, one writer thread, a few reading connections.

mod backup;
mod cancellation;
mod closed;
mod connection;
mod database_file;
mod draft;
mod error;
mod key_values;
mod lock;
mod memory;
mod reader_pool;
mod restore;
mod sessions;
mod text_search;
mod wal;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;
use crate::migrate::{Migration, latest, migrations};
use crate::open::{OpenError, StoreOptions};
use crate::store::Counters;
use cancellation::Cancellation;
pub(crate) use closed::ClosedSqlite;
use lock::Lock;
use reader_pool::ReaderPool;
use wal::Wal;
use writer::Writer;

/// The migrations from an empty file to the current schema.
pub(crate) const MIGRATIONS: &[Migration] = migrations! {
    1 => "migrations/0001_key_values.sql",
    2 => "migrations/0002_sessions.sql",
    3 => "migrations/0003_memory.sql",
};

/// An open SQLite file.
pub(crate) struct SqliteStore {
    path: PathBuf,
    settings: StoreOptions,
    writer: Writer,
    readers: ReaderPool,
    /// One backup or restore at a time: each copies the whole database.
    turns: Arc<Semaphore>,
    cancellation: Cancellation,
}

impl SqliteStore {
    pub(crate) async fn open(path: PathBuf, settings: StoreOptions) -> Result<Self, OpenError> {
        let opened = tokio::task::spawn_blocking(move || Self::open_here(&path, &settings)).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Engine(panic.into())))
    }

    fn open_here(path: &Path, settings: &StoreOptions) -> Result<Self, OpenError> {
        refuse_old_sqlite()?;
        let directory = database_file::prepare_directory(path)?;
        let lock = Lock::take(path, settings.exclusive)?;
        if !database_file::exists(path)? {
            database_file::create(&directory, path, |draft| connection::fill(draft, settings))?;
        }
        connection::inspect(path, settings)?;
        let mut writing = connection::writer(path, settings)?;
        connection::migrate(&mut writing, path)?;
        let reading = (0..settings.readers).map(|_| connection::reader(path, settings));
        let readers = ReaderPool::start(reading.collect::<Result<_, _>>()?)
            .map_err(OpenError::file(path, "the threads that read cannot be started"))?;
        let writer = Writer::start(writing, lock, Wal::for_database(path), settings.busy_timeout)
            .map_err(OpenError::file(path, "the thread that writes cannot be started"))?;
        let (path, settings) = (path.to_owned(), settings.clone());
        Ok(Self {
            path,
            settings,
            writer,
            readers,
            turns: Arc::new(Semaphore::new(1)),
            cancellation: Cancellation::default(),
        })
    }

    /// Runs `work` in a transaction, possibly together with other writes. It may run twice. Returns after the changes
    /// are on the disk.
    async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.writer.run(work).await
    }

    /// Runs `work` on a read-only connection. Each statement sees a consistent snapshot; several see the same one only
    /// in a transaction.
    async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.readers.run(work).await
    }

    async fn acquire_turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Error::Closed)
    }

    /// Runs long work on a separate thread, and cancels it when the caller stops waiting.
    async fn run_cancellable<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Cancellation) -> Result<T, Error> + Send + 'static,
    {
        let (halt, _wanted) = self.cancellation.child();
        let done = tokio::task::spawn_blocking(move || work(&halt)).await;
        done.unwrap_or_else(|panic| Err(Error::Engine(panic.into())))
    }

    pub(crate) fn schema_version() -> u32 {
        latest(MIGRATIONS)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn counters(&self) -> Counters {
        self.writer.counters()
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.read(|db| Ok(db.query_row("SELECT 1", [], |_| Ok(()))?)).await
    }

    /// Closes the readers first: the connection that is closed last writes the log into the database.
    pub(crate) async fn close(&self) {
        self.cancellation.close();
        // When this is acquired, running copies have ended; waiting ones get an error that the store is closed.
        let last = self.turns.acquire().await;
        self.turns.close();
        drop(last);
        self.readers.close().await;
        self.writer.close().await;
    }
}

fn refuse_old_sqlite() -> Result<(), OpenError> {
    let (number, needed) = connection::MIN_SQLITE;
    if rusqlite::version_number() < number {
        return Err(OpenError::OldSqlite { found: rusqlite::version(), needed });
    }
    Ok(())
}
