//! Handover to the next supervisor through the service manager, which keeps the bundle in between.

use std::os::fd::AsFd;

use super::document::PackError;
use crate::notify::Manager;
use crate::serve::running::RunningSupervisor;

/// Why the manager did not get the bundle.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("the service manager does not take it: {0}")]
    Store(#[source] std::io::Error),
}

impl RunningSupervisor {
    /// Freezes this supervisor and stores everything with the manager. Returns true on success; then only
    /// [`release`](Self::release) is left to do. Otherwise the reason is logged, and everything has to be
    /// stopped.
    pub(in crate::serve) async fn store(&mut self, manager: &Manager) -> bool {
        self.freeze(self.grace()).await;
        match self.send(manager).await {
            Ok(()) => {
                tracing::info!("handed over: the service manager keeps the plugins for the next start");
                true
            }
            Err(error) => {
                tracing::error!(%error, "nothing was handed over: the plugins are stopped");
                false
            }
        }
    }

    async fn send(&self, manager: &Manager) -> Result<(), StoreError> {
        let bundle = self.pack().await?;
        let manager = manager.clone();
        let stored = tokio::task::spawn_blocking(move || manager.store(bundle.as_fd()));
        match stored.await {
            Ok(stored) => stored.map_err(StoreError::Store),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}
