//! The draft of a restore: a copy of the copy, checked and migrated to the current schema.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::cancellation::Cancellation;
use super::database_file::{self, sibling_path};
use super::{backup, connection};
use crate::error::Error;
use crate::options::StoreOptions;

/// How much is copied between two checks for cancellation.
const CHUNK_BYTES: u64 = 16 * 1024 * 1024;

/// A single file beside the database, accessible to us only, that can replace it. It is removed when this is
/// dropped, unless it was renamed. A draft left by a crash is overwritten by the next one.
pub(super) struct Draft {
    path: PathBuf,
    /// Locked: of several processes that restore at once, one has the draft.
    _held: File,
    pub(super) copy_version: u32,
    pub(super) bytes: u64,
}

impl Draft {
    /// Copies `from` without changing or trusting it.
    pub(super) fn copy_from(
        from: &Path,
        database: &Path,
        settings: &StoreOptions,
        halt: &Cancellation,
    ) -> Result<Self, Error> {
        let bad = |why: &str| Err(Error::BadCopy { path: from.to_owned(), why: why.to_owned() });
        if database_file::same_file(from, database) {
            return bad("it is the database itself");
        }
        let copy = open(from)?;
        if copy.metadata().map_err(Error::file(from, "the copy cannot be seen"))?.len()
            < database_file::MIN_FILE_BYTES
        {
            return bad("it is empty, or cut off");
        }
        let path = sibling_path(database, ".restoring");
        let mut draft = Self { _held: create_file(&path, settings)?, path, copy_version: 0, bytes: 0 };
        draft.remove_logs();
        copy_bytes(copy, &draft.path, halt)?;
        // A database that was copied as files has its last writes in its log.
        let log = sibling_path(from, "-wal");
        if fs::metadata(&log).is_ok_and(|found| found.is_file() && found.len() > 0) {
            copy_bytes(open(&log)?, &sibling_path(&draft.path, "-wal"), halt)?;
        }
        draft.examine(settings, halt).map_err(|error| match error {
            Error::BadCopy { why, .. } => Error::BadCopy { path: from.to_owned(), why },
            other => other,
        })?;
        Ok(draft)
    }

    fn examine(&mut self, settings: &StoreOptions, halt: &Cancellation) -> Result<(), Error> {
        let mut connection = connection::examiner(&self.path, settings, halt)?;
        self.copy_version = connection::examine(&connection, &self.path)?;
        connection::migrate(&mut connection, &self.path).map_err(connection::copy_error)?;
        self.check_schema(&connection)?;
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
        self.bytes = number("page_count")? * number("page_size")?;
        if let Some(most) = settings.max_bytes.filter(|most| self.bytes > *most) {
            return Err(self.bad(format!("it has {} bytes, and the store may have {most}", self.bytes)));
        }
        connection.close().map_err(|(_, error)| error)?;
        connection::drop_wal(&self.path)?;
        self.remove_logs();
        backup::synced(&self.path)
    }

    /// A missing table would fail later, and a foreign trigger would run.
    fn check_schema(&self, connection: &Connection) -> Result<(), Error> {
        let new = connection::new_in_memory()?;
        if schema(connection)? == schema(&new)? {
            return Ok(());
        }
        Err(self.bad("its tables are not those of its version".to_owned()))
    }

    fn bad(&self, why: String) -> Error {
        Error::BadCopy { path: self.path.clone(), why }
    }

    /// A connection that reads it.
    pub(super) fn reader(&self, settings: &StoreOptions) -> Result<Connection, Error> {
        Ok(connection::reader(&self.path, settings)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn remove_logs(&self) {
        for suffix in ["-wal", "-shm", "-journal"] {
            // Exists only after a crash.
            let _gone = fs::remove_file(sibling_path(&self.path, suffix));
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // If this fails, the next draft overwrites it.
        let _gone = fs::remove_file(&self.path);
        self.remove_logs();
    }
}

/// The definition of every object, without SQLite's internal tables.
fn schema(connection: &Connection) -> rusqlite::Result<Vec<(String, String, Option<String>)>> {
    connection
        .prepare("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY 1, 2")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

/// Opens without waiting for the other end of a pipe.
fn open(path: &Path) -> Result<File, Error> {
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblock)
        .open(path)
        .map_err(Error::file(path, "the copy cannot be opened"))?;
    if file.metadata().is_ok_and(|found| found.is_file()) {
        return Ok(file);
    }
    Err(Error::BadCopy { path: path.to_owned(), why: "it is not a file".to_owned() })
}

/// Creates and locks the draft's file, empty and accessible to us only.
fn create_file(path: &Path, settings: &StoreOptions) -> Result<File, Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(Error::file(path, "the file cannot be made"))?;
    let busy = || Error::Busy(settings.busy_timeout);
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy())?;
    // Its last holder may have removed it before this one got the lock.
    let same = fs::symlink_metadata(path)
        .and_then(|named| file.metadata().map(|held| (named.dev(), named.ino()) == (held.dev(), held.ino())));
    if !same.unwrap_or(false) {
        return Err(busy());
    }
    file.set_len(0).map_err(Error::file(path, "the file cannot be emptied"))?;
    Ok(file)
}

fn copy_bytes(mut from: File, to: &Path, halt: &Cancellation) -> Result<(), Error> {
    let mut into = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(to)
        .map_err(Error::file(to, "the file cannot be made"))?;
    loop {
        if halt.is_cancelled() {
            return Err(Error::Closed);
        }
        let copied = io::copy(&mut (&mut from).take(CHUNK_BYTES), &mut into);
        if copied.map_err(Error::file(to, "the copy cannot be read or written"))? == 0 {
            return Ok(());
        }
    }
}
