//! The signals that a supervisor listens to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What stopped the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    Terminate,
    Interrupt,
    Lifeline,
}

impl StopCause {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Lifeline => "the end of standard input",
        }
    }
}

/// Resolves when the other end of the lifeline is closed.
pub type Lifeline = oneshot::Receiver<()>;

/// A lifeline on standard input: its other end is a pipe of the process that started this supervisor. The
/// kernel closes it however that process ends.
#[must_use]
pub fn stdin_lifeline() -> Lifeline {
    let (held, lifeline) = oneshot::channel();
    // A separate, detached thread: the read can only be ended from the other side.
    let watch = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(held);
    };
    // If the thread cannot start, `held` is dropped with the closure, and the supervisor ends, which is the
    // safe behaviour.
    let _ = std::thread::Builder::new().name("talon-lifeline".to_owned()).spawn(watch);
    lifeline
}

/// Handles signals from now on, so that they no longer end the process.
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

    /// Resolves at the next stop signal. Cancel safe; may be called again.
    pub(super) async fn stop(&mut self) -> StopCause {
        tokio::select! {
            Some(()) = self.terminate.recv() => StopCause::Terminate,
            Some(()) = self.interrupt.recv() => StopCause::Interrupt,
            () = lifeline_cut(&mut self.lifeline) => StopCause::Lifeline,
        }
    }
}

/// Resolves only once: a second stop request would mean "at once".
async fn lifeline_cut(lifeline: &mut Option<Lifeline>) {
    match lifeline {
        Some(held) => {
            let _ = held.await;
            *lifeline = None;
        }
        None => std::future::pending().await,
    }
}
