//! Ends the endless streams (events and logs) when the supervisor stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

/// Start of the error with which a stream ends when another supervisor takes over.
pub const HANDING_OVER: &str = "another supervisor takes over";

/// Ends the streams of one server. Clones share state.
#[derive(Debug, Clone, Default)]
pub struct StreamCloser {
    token: CancellationToken,
    succeeded: Arc<AtomicBool>,
}

impl StreamCloser {
    /// Ends the streams: the supervisor stops.
    pub fn end(&self) {
        self.token.cancel();
    }

    /// Ends the streams with an error that tells clients to reconnect at once, because another supervisor
    /// takes over.
    pub fn hand_over(&self) {
        self.succeeded.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(super) fn ended(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }

    /// The final status of a stream that is ended from here.
    pub(super) fn final_status(&self) -> Option<Status> {
        self.succeeded
            .load(Ordering::Acquire)
            .then(|| Status::unavailable(format!("{HANDING_OVER}: connect again, and ask again")))
    }
}
