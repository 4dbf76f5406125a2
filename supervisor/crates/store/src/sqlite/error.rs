//! From SQLite's errors to ours.

use std::time::Duration;

use rusqlite::ffi::ErrorCode;

use crate::error::Error;

/// What SQLite could not do.
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

/// A file of the log's index that cannot grow is reported as a failed input or output.
fn is_full(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(code, _)
        if code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}
