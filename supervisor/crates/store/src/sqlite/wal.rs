//! Bounds the size of the write-ahead log (WAL).
//!
//! SQLite checkpoints the log automatically, as far as no reader uses older contents, and restarts it once
//! all of it was checkpointed. If readers always overlap, which callers can cause, that moment never comes.
//! So it is forced: writers wait for readers, while readers wait for no one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::database_file::sibling_path;

/// From this size on the log is restarted. Usually it stays at some 4 MiB, and a group of the largest writes
/// has 256.
const RESTART_BYTES: u64 = 64 << 20;
/// After a failed attempt because of readers, the next is made when the log has grown by this.
const RETRY_STEP_BYTES: u64 = 16 << 20;
/// How long writers wait for readers in such an attempt. A read takes far less; one that does not, such as a
/// backup's, is not worth waiting for.
const RESTART_WAIT: Duration = Duration::from_millis(200);
/// The largest log. Beyond it writers get [`Error::Full`](crate::Error::Full) until the oldest reader has
/// ended. A gibibyte covers the writes during a backup of a large database, and a disk can spare it.
const MAX_BYTES: u64 = 1 << 30;

/// The log has its largest size, and a reader prevents its restart.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the log has {bytes} bytes, and a reader has read for too long for it to be begun anew")]
pub(super) struct WalFullError {
    bytes: u64,
}

/// The write-ahead log of one database.
#[derive(Debug)]
pub(super) struct Wal {
    path: PathBuf,
    max: u64,
    large: u64,
    step: u64,
    next: u64,
}

impl Wal {
    pub(super) fn for_database(database: &Path) -> Self {
        let path = sibling_path(database, "-wal");
        Self { path, max: MAX_BYTES, large: RESTART_BYTES, step: RETRY_STEP_BYTES, next: RESTART_BYTES }
    }

    /// After a commit: restarts the log if it has become large and no reader prevents it.
    pub(super) fn after_commit(&mut self, connection: &Connection, busy: Duration) {
        let bytes = self.bytes();
        if bytes < self.next {
            return;
        }
        match restart_wal(connection, RESTART_WAIT, busy) {
            Ok(true) => self.next = self.large,
            Ok(false) => self.next = bytes + self.step,
            Err(error) => {
                tracing::warn!(%error, "the log cannot be written back");
                self.next = bytes + self.step;
            }
        }
    }

    /// Before a write: checks whether there is room for it.
    ///
    /// # Errors
    /// [`WalFullError`]
    pub(super) fn check_room(&self, connection: &Connection, busy: Duration) -> Result<(), WalFullError> {
        let bytes = self.bytes();
        if bytes < self.max || matches!(restart_wal(connection, busy, busy), Ok(true)) {
            return Ok(());
        }
        Err(WalFullError { bytes })
    }

    /// Its size. The first commit after a restart truncates it.
    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.len())
    }
}

/// Checkpoints the log and makes the next commit restart it; returns whether that succeeded.
fn restart_wal(connection: &Connection, wait: Duration, ordinarily: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(wait)?;
    let hindered: rusqlite::Result<i64> =
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0));
    connection.busy_timeout(ordinarily)?;
    Ok(hindered? == 0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const BUSY: Duration = Duration::from_millis(20);

    /// A database with this log limit, and connections to write to it.
    fn scene(most: u64) -> (tempfile::TempDir, Connection, Connection, Wal) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.db");
        let open = || {
            let connection = Connection::open(&path).unwrap();
            connection.pragma_update(None, "journal_mode", "wal").unwrap();
            connection.pragma_update(None, "journal_size_limit", 4096).unwrap();
            connection
        };
        let (writer, reader) = (open(), open());
        writer.execute_batch("CREATE TABLE t (v BLOB); INSERT INTO t VALUES (zeroblob(10))").unwrap();
        let log =
            Wal { max: most, large: 256 << 10, step: 64 << 10, next: 256 << 10, ..Wal::for_database(&path) };
        (dir, writer, reader, log)
    }

    fn write(writer: &Connection, log: &mut Wal) -> Result<(), WalFullError> {
        log.check_room(writer, BUSY)?;
        writer.execute_batch("UPDATE t SET v = randomblob(100000)").unwrap();
        log.after_commit(writer, BUSY);
        Ok(())
    }

    // Promises: STATE-30
    #[test]
    fn readers_that_overlap_do_not_let_it_grow() {
        let (_dir, writer, first, mut log) = scene(u64::MAX);
        let second = Connection::open(writer.path().unwrap()).unwrap();
        let enough = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            // There is always a reader that began before the other ended.
            scope.spawn(move || {
                let read = |connection: &Connection| {
                    connection.execute_batch("BEGIN; SELECT length(v) FROM t").unwrap();
                };
                read(&first);
                while !enough.load(Ordering::Relaxed) {
                    read(&second);
                    first.execute_batch("COMMIT").unwrap();
                    read(&first);
                    second.execute_batch("COMMIT").unwrap();
                }
            });
            for _ in 0..100 {
                write(&writer, &mut log).unwrap();
            }
            enough.store(true, Ordering::Relaxed);
        });
        assert!(log.bytes() < 5 << 20, "{} of 10 MB that were written", log.bytes());
    }

    // Promises: STATE-30
    #[test]
    fn at_the_most_writers_wait_until_the_reader_has_ended() {
        let (_dir, writer, reader, mut log) = scene(1 << 20);
        reader.execute_batch("BEGIN; SELECT length(v) FROM t").unwrap();
        let written = (0..100).take_while(|_| write(&writer, &mut log).is_ok()).count();
        assert!((5..20).contains(&written), "{written}");
        assert!(write(&writer, &mut log).unwrap_err().to_string().contains("read for too long"));
        reader.execute_batch("COMMIT").unwrap();
        write(&writer, &mut log).unwrap();
        write(&writer, &mut log).unwrap();
        assert!(log.bytes() < 1 << 20, "{}", log.bytes());
    }
}
