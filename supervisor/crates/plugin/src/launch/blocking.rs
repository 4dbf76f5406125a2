//! Blocking work of a start.

use tokio::task::JoinError;

use super::error::LaunchError;

/// Re-raises a panic of blocking work, so that the driver catches it.
pub(super) fn flatten_join<T>(result: Result<Result<T, LaunchError>, JoinError>) -> Result<T, LaunchError> {
    match result {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(LaunchError::Stopping),
    }
}
