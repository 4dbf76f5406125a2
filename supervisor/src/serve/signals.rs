//! The signals that a supervisor listens to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What asked the supervisor to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Terminate,
    Interrupt,
}

impl Stop {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }
}

/// Signals from now on; none of them ends the process by itself any more.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Resolves at the next signal that asks to stop. Safe to call again and to drop.
    pub(super) async fn stop(&mut self) -> Stop {
        loop {
            tokio::select! {
                Some(()) = self.terminate.recv() => return Stop::Terminate,
                Some(()) = self.interrupt.recv() => return Stop::Interrupt,
                Some(()) = self.hangup.recv() => {
                    // A closed terminal must not end a supervisor.
                    tracing::warn!("SIGHUP: the configuration is read at the start only; restart talon to change it");
                }
            }
        }
    }
}
