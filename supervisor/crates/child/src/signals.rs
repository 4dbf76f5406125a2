//! The signals that mean something.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that are listened to.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    /// A terminal that goes, or Ctrl-C on it, is the starter's affair: it lets go of the control socket when it ends.
    _ignored: [Signal; 2],
}

impl Signals {
    /// Begins to listen. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            _ignored: [signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?],
        })
    }

    /// Resolves when the process is asked to end.
    pub async fn terminated(&mut self) {
        self.terminate.recv().await;
    }
}
