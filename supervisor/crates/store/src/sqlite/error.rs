//! Converts SQLite's errors.

use std::time::Duration;

use rusqlite::ffi::ErrorCode;

use crate::error::Error;

/// Converts an error of SQLite.
pub(super) fn failed(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full(error.into()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt(error.into()),
        Some(ErrorCode::SystemIoFailure) if is_full(&error) => Error::Full(error.into()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy(Duration::ZERO),
        _ => Error::Engine(error.into()),
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        failed(error)
    }
}

/// If a file of the log's index cannot grow, SQLite reports an I/O error.
fn is_full(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(code, _)
        if code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}
