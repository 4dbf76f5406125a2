//! Handover to a supervisor that asked on `host.sock`: the old supervisor's side.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::document::PackError;
use super::rendezvous::{Rendezvous, RendezvousError};
use super::wire::{HandoverConnection, HandoverConnectionError, Kind};
use crate::host::{ExitRequest, HandOverError};
use crate::serve::running::RunningSupervisor;

/// How long the successor may take from the offer to the confirmation: to open the database, which has half a
/// minute, and to reach each plugin. If it takes longer, the handover is aborted.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// Why the takeover was aborted.
#[derive(Debug, thiserror::Error)]
enum TakeoverAbortedError {
    #[error(transparent)]
    Meet(#[from] RendezvousError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("the other supervisor did not take over: {0}")]
    Line(#[from] HandoverConnectionError),
}

/// The outcome of a takeover.
pub(in crate::serve) enum TakeoverOutcome {
    /// The other supervisor has everything.
    HandedOver,
    /// This supervisor continues; the reason is logged.
    Retained,
}

impl RunningSupervisor {
    /// Opens a rendezvous for the process that asked, and hands everything over to it.
    pub(in crate::serve) async fn hand_over(
        &mut self,
        pid: u32,
        answer: oneshot::Sender<Result<PathBuf, HandOverError>>,
        asks: &mut mpsc::Receiver<ExitRequest>,
    ) -> TakeoverOutcome {
        let meeting = match Rendezvous::bind(&self.config().runtime_dir) {
            Ok(meeting) => meeting,
            Err(error) => {
                tracing::error!(%error, "nothing is handed over");
                // The client may have gone away.
                let _ = answer.send(Err(HandOverError::Socket(error.into())));
                return TakeoverOutcome::Retained;
            }
        };
        let _ = answer.send(Ok(meeting.path().to_owned()));
        tracing::info!(pid, "another supervisor asks to take over");
        let tried = tokio::select! {
            tried = self.attempt(meeting, pid) => tried,
            () = refuse_others(asks, pid) => Err(HandoverConnectionError::Ended.into()),
        };
        match tried {
            Ok(()) => {
                tracing::info!("handed over to pid {pid}");
                TakeoverOutcome::HandedOver
            }
            Err(error) => {
                tracing::error!(pid, "nothing was handed over, serving on: {error}");
                TakeoverOutcome::Retained
            }
        }
    }

    async fn attempt(&mut self, meeting: Rendezvous, pid: u32) -> Result<(), TakeoverAbortedError> {
        let line = meeting.wait_for(pid).await?;
        self.freeze(self.grace()).await;
        let taken = self.offer(&line).await;
        if let Err(error @ (TakeoverAbortedError::Pack(_) | TakeoverAbortedError::Meet(_))) = &taken {
            // A successor that still exists learns the reason.
            let _ = line.failed(&error.to_string()).await;
        }
        taken
    }

    async fn offer(&mut self, line: &HandoverConnection) -> Result<(), TakeoverAbortedError> {
        let bundle = self.pack().await?;
        // From here on the successor may control the processes, so we must not.
        self.registry.pause();
        line.offer(bundle.as_fd()).await?;
        drop(bundle);
        line.receive(Kind::Taken, TAKEN_WITHIN).await?;
        // Without this message the successor exits, so it is always clear which supervisor has the processes.
        Ok(line.gone().await?)
    }
}

/// Only one handover at a time: other requests are refused with the pid of the first.
async fn refuse_others(asks: &mut mpsc::Receiver<ExitRequest>, pid: u32) {
    while let Some(asked) = asks.recv().await {
        match asked {
            // A later request reaches the successor, or us.
            ExitRequest::Shutdown(answer) => drop(answer),
            ExitRequest::HandOver { answer, .. } => {
                let _ = answer.send(Err(HandOverError::InProgress { pid }));
            }
        }
    }
}
