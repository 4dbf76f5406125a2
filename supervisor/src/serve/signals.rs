//! The signals that a supervisor listens to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What asked the supervisor to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Terminate,
    Interrupt,
    Lifeline,
}

impl Stop {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Lifeline => "the end of standard input",
        }
    }
}

/// Resolves when nobody holds the other end any more.
pub type Lifeline = oneshot::Receiver<()>;

/// A lifeline that is standard input: its other end is a pipe of whoever started this supervisor for itself. However that
/// process ends, the kernel closes it.
#[must_use]
pub fn stdin_ends() -> Lifeline {
    let (held, lifeline) = oneshot::channel();
    // A thread of its own, which nobody waits for: reading can only be ended from the other side.
    let watch = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(held);
    };
    // Without the thread `held` is dropped with the closure, and the supervisor ends, which is the safe side.
    let _ = std::thread::Builder::new().name("talon-lifeline".to_owned()).spawn(watch);
    lifeline
}

/// Signals from now on; none of them ends the process by itself any more.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    lifeline: Option<Lifeline>,
}

impl Signals {
    pub(super) fn new(lifeline: Option<Lifeline>) -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            lifeline,
        })
    }

    /// Resolves at the next signal that asks to stop. Safe to call again and to drop.
    pub(super) async fn stop(&mut self) -> Stop {
        tokio::select! {
            Some(()) = self.terminate.recv() => Stop::Terminate,
            Some(()) = self.interrupt.recv() => Stop::Interrupt,
            () = cut(&mut self.lifeline) => Stop::Lifeline,
        }
    }
}

/// Once only: that it is cut is said one time, and asking for a stop again must not mean "at once".
async fn cut(lifeline: &mut Option<Lifeline>) {
    match lifeline {
        Some(held) => {
            let _ = held.await;
            *lifeline = None;
        }
        None => std::future::pending().await,
    }
}
