//! The end of streams that would go on for ever: those of events and logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

/// How the error begins with which a stream ends when another supervisor takes over.
pub const HANDING_OVER: &str = "another supervisor takes over";

/// Ends the streams of one server. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Closing {
    token: CancellationToken,
    succeeded: Arc<AtomicBool>,
}

impl Closing {
    /// Ends them: the supervisor stops.
    pub fn end(&self) {
        self.token.cancel();
    }

    /// Ends them with a word that there is somebody to connect to at once.
    pub fn hand_over(&self) {
        self.succeeded.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(super) fn ended(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }

    /// The last word of a stream that did not end by itself.
    pub(super) fn last_word(&self) -> Option<Status> {
        self.succeeded
            .load(Ordering::Acquire)
            .then(|| Status::unavailable(format!("{HANDING_OVER}: connect again, and ask again")))
    }
}
