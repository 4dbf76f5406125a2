//! SQLite: one file, one thread that writes, a few connections that read.

mod connection;
mod error;
mod key_values;
mod lock;
mod memory;
mod place;
mod readers;
mod sessions;
mod words;
mod writer;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::Error;
use crate::migrate::{Migration, migrations};
use crate::open::{Open, OpenError};
use crate::store::Counters;
use lock::Lock;
use readers::Readers;
use writer::Writer;

/// What leads from an empty file to the present schema.
pub(crate) const MIGRATIONS: &[Migration] = migrations! {
    1 => "migrations/0001_key_values.sql",
    2 => "migrations/0002_sessions.sql",
    3 => "migrations/0003_memory.sql",
};

/// An open SQLite file.
pub(crate) struct SqliteStore {
    writer: Writer,
    readers: Readers,
}

impl SqliteStore {
    pub(crate) async fn open(path: PathBuf, settings: Open) -> Result<Self, OpenError> {
        let opened = tokio::task::spawn_blocking(move || Self::open_here(&path, &settings)).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Engine(panic.into())))
    }

    fn open_here(path: &Path, settings: &Open) -> Result<Self, OpenError> {
        let (number, needed) = connection::NEEDED;
        if rusqlite::version_number() < number {
            return Err(OpenError::OldSqlite { found: rusqlite::version(), needed });
        }
        let directory = place::directory(path)?;
        let lock = Lock::take(path, settings.exclusive)?;
        if !place::exists(path)? {
            place::create(&directory, path, |draft| connection::fill(draft, settings))?;
        }
        connection::inspect(path, settings)?;
        let mut writing = connection::writer(path, settings)?;
        connection::migrate(&mut writing, path)?;
        let reading = (0..settings.readers).map(|_| connection::reader(path, settings));
        let readers = Readers::start(reading.collect::<Result<_, _>>()?)
            .map_err(OpenError::file(path, "the threads that read cannot be started"))?;
        let writer = Writer::start(writing, lock, settings.busy_timeout)
            .map_err(OpenError::file(path, "the thread that writes cannot be started"))?;
        Ok(Self { writer, readers })
    }

    /// Runs `work` in a transaction with whoever else writes at the moment. It may run twice, and returns after what it
    /// wrote is on the disk.
    async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.writer.run(work).await
    }

    /// Runs `work` on a connection that can only read. Each statement sees the database at one moment; several see it at
    /// several, unless they are in a transaction.
    async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.readers.run(work).await
    }

    pub(crate) fn counters(&self) -> Counters {
        self.writer.counters()
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.read(|db| Ok(db.query_row("SELECT 1", [], |_| Ok(()))?)).await
    }

    /// The readers first: who closes last puts the log into the database.
    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}
