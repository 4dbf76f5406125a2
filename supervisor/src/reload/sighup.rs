//! SIGHUP: reloads the configuration.
//!
//! The handler is installed at the very start, so that the signal never ends the process. A signal during the
//! start is handled afterwards; several during a reload cause one more reload. It is ignored while the
//! supervisor stops.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

use super::reloader::Reloader;
use super::trigger::ReloadTrigger;

/// Pending signals.
pub(crate) struct ReloadSignals(Signal);

impl ReloadSignals {
    /// Installs the handler.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Reloads at each pending or later signal, until the handle is dropped.
    pub(crate) fn run(mut self, reloader: Reloader) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(async move {
            while self.0.recv().await.is_some() {
                tracing::info!("SIGHUP: the configuration is read anew");
                reloader.reload_automatically(ReloadTrigger::Signal).await;
            }
        }))
    }
}
