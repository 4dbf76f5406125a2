//! An open SQLite file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::cancellation::Cancellation;
use super::lock::Lock;
use super::migrations::MIGRATIONS;
use super::reader_pool::ReaderPool;
use super::wal::Wal;
use super::writer::Writer;
use super::{connection, database_file};
use crate::counters::Counters;
use crate::error::Error;
use crate::migrate::latest;
use crate::open_error::OpenError;
use crate::options::StoreOptions;

/// An open SQLite file.
pub(crate) struct SqliteStore {
    pub(super) path: PathBuf,
    pub(super) settings: StoreOptions,
    pub(super) writer: Writer,
    readers: ReaderPool,
    /// One backup or restore at a time: each copies the whole database.
    turns: Arc<Semaphore>,
    cancellation: Cancellation,
    /// Whether there may be memories. While there is none, the one process that has the database opened looks for none.
    may_have_memories: AtomicBool,
}

impl SqliteStore {
    pub(crate) async fn open(path: PathBuf, settings: StoreOptions) -> Result<Self, OpenError> {
        let opened = tokio::task::spawn_blocking(move || Self::open_here(&path, &settings)).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Engine(panic.into())))
    }

    fn open_here(path: &Path, settings: &StoreOptions) -> Result<Self, OpenError> {
        connection::refuse_old_sqlite()?;
        let directory = database_file::prepare_directory(path)?;
        let lock = Lock::take(path, settings.exclusive)?;
        if !database_file::exists(path)? {
            database_file::create(&directory, path, |draft| connection::fill(draft, settings))?;
        }
        connection::inspect(path, settings)?;
        let mut writing = connection::writer(path, settings)?;
        connection::migrate(&mut writing, path)?;
        let may_have_memories = !settings.exclusive || connection::has_memories(&writing, path)?;
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
            may_have_memories: AtomicBool::new(may_have_memories),
        })
    }

    /// Whether there may be memories; once there were some, there may be.
    pub(super) fn may_have_memories(&self) -> bool {
        self.may_have_memories.load(Ordering::Acquire)
    }

    /// Memories are about to be written.
    pub(super) fn expect_memories(&self) {
        self.may_have_memories.store(true, Ordering::Release);
    }

    /// Runs `work` in a transaction, possibly together with other writes. It may run twice. Returns after the
    /// changes are on the disk.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.writer.run(work).await
    }

    /// Runs `work` on a read-only connection. Each statement sees a consistent snapshot; several see the same
    /// one only in a transaction.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.readers.run(work).await
    }

    pub(super) async fn acquire_turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Error::Closed)
    }

    /// Runs long work on a separate thread, and cancels it when the caller stops waiting.
    pub(super) async fn run_cancellable<T, F>(&self, work: F) -> Result<T, Error>
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

    pub(crate) async fn refused_for_room(&self) {
        self.writer.refused_for_room().await;
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.read(|db| Ok(db.query_row("SELECT 1", [], |_| Ok(()))?)).await
    }

    /// Closes the readers first: the connection that is closed last writes the log into the database.
    pub(crate) async fn close(&self) {
        self.cancellation.close();
        // When this is acquired, running copies have ended; waiting ones get an error that the store is
        // closed.
        let last = self.turns.acquire().await;
        self.turns.close();
        drop(last);
        self.readers.close().await;
        self.writer.close().await;
    }
}
