//! Converts PostgreSQL's errors.

use std::error::Error as StdError;
use std::time::Duration;

use deadpool_postgres::PoolError;
use talon_error_chain::error_chain;
use tokio_postgres::error::SqlState;

use super::timeouts::MAX_LOCK;
use crate::error::Error;

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(code) = error.code() else {
            // An error without a code is not from the server: the connection broke, or the request was wrong.
            return if error.is_closed() || is_io(&error) {
                unavailable(error_chain(&error))
            } else {
                Self::Engine(error.into())
            };
        };
        match code {
            &SqlState::DISK_FULL => Self::Full(error.into()),
            &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Self::Corrupt(error.into()),
            &SqlState::LOCK_NOT_AVAILABLE | &SqlState::T_R_DEADLOCK_DETECTED => Self::Busy(MAX_LOCK),
            // 57P: the server is starting or shutting down. 53300: it has no connections left.
            code if code.code().starts_with("57P") || code == &SqlState::TOO_MANY_CONNECTIONS => {
                unavailable(error_chain(&error))
            }
            // It is read-only: it became a standby again, or always was one.
            &SqlState::READ_ONLY_SQL_TRANSACTION => unavailable(error_chain(&error)),
            _ => Self::Engine(error.into()),
        }
    }
}

/// The circuit breaker sets the time of the next attempt.
fn unavailable(reason: String) -> Error {
    Error::Unavailable { reason, retry_in: Duration::ZERO }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A pool's error, with its cause.
pub(super) fn pool_message(error: &PoolError) -> String {
    match error {
        PoolError::Timeout(_) => "it does not answer".to_owned(),
        PoolError::Backend(error) => error_chain(error),
        other => error_chain(other),
    }
}
