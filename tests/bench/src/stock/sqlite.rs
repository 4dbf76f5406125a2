//! SQLite alone, as durable as the store: the alternative for a plugin that keeps its state in a private
//! file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use rusqlite::Connection;

/// Bytes of a value: plugins typically store a few hundred.
pub const VALUE_BYTES: usize = 256;
/// Few enough keys to fit into every cache, so that the disk matters only for writes.
pub const KEYS: u64 = 1000;

/// A value that was never stored before: SQLite neither writes nor syncs an unchanged one.
#[must_use]
pub fn unique_value() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut value = vec![7; VALUE_BYTES];
    value[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_ne_bytes());
    value
}

/// The key with this number.
#[must_use]
pub fn key_name(number: u64) -> String {
    format!("key-{:04}", number % KEYS)
}

/// Creates a database, with a value for every key.
///
/// # Errors
/// Of SQLite or the file system.
pub fn open(path: &Path) -> Result<Connection> {
    let directory = path.parent().context("a file lies in a directory")?;
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))?;
    let raw = Connection::open(path)?;
    raw.pragma_update(None, "journal_mode", "wal")?;
    // An fsync for each commit.
    raw.pragma_update(None, "synchronous", "full")?;
    raw.execute_batch("CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB NOT NULL)")?;
    raw.execute_batch("BEGIN")?;
    for number in 0..KEYS {
        set(&raw, number)?;
    }
    raw.execute_batch("COMMIT")?;
    Ok(raw)
}

/// Reads one value.
///
/// # Errors
/// Of SQLite.
pub fn get(raw: &Connection, number: u64) -> Result<Vec<u8>> {
    let mut get = raw.prepare_cached("SELECT value FROM kv WHERE key = ?1")?;
    Ok(get.query_row([key_name(number).as_bytes()], |row| row.get(0))?)
}

/// Writes one value.
///
/// # Errors
/// Of SQLite.
pub fn set(raw: &Connection, number: u64) -> Result<()> {
    let mut set = raw.prepare_cached("INSERT OR REPLACE INTO kv VALUES (?1, ?2)")?;
    set.execute((key_name(number).as_bytes(), unique_value()))?;
    Ok(())
}
