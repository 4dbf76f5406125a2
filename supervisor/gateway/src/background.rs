//! Places of turns that nobody waits for.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns that nobody waits for, at once, of everybody: each holds a stream to the agent. One more is refused as busy.
pub(crate) const MAX_BACKGROUND_TURNS: usize = 256;

/// The places. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundTurns(Arc<Semaphore>);

impl Default for BackgroundTurns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BACKGROUND_TURNS)))
    }
}

impl BackgroundTurns {
    /// A place, until it is dropped; `None` if all are taken.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        MAX_BACKGROUND_TURNS - self.0.available_permits()
    }
}
