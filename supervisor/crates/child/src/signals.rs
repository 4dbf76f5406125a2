//! Signal handling.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The handled signals.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    /// Hangup and Ctrl-C of a terminal are left to the supervisor, which closes the control socket when it
    /// ends.
    _ignored: [Signal; 2],
}

impl Signals {
    /// Installs the handlers. Must be called within a tokio runtime.
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
