//! Handover to a supervisor that asked on `host.sock`: the old supervisor's side.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::document::PackError;
use super::meeting::{MeetError, Meeting};
use super::wire::{Kind, Line, LineError};
use crate::host::Asked;
use crate::serve::running::Running;

/// How long the successor may take from the offer to the confirmation: to open the database, which has half a
/// minute, and to reach each plugin. If it takes longer, the handover is aborted.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// Why the takeover was aborted.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error(transparent)]
    Meet(#[from] MeetError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("the other supervisor did not take over: {0}")]
    Line(#[from] LineError),
}

/// The outcome of a takeover.
pub(in crate::serve) enum Outcome {
    /// The other supervisor has everything.
    Gone,
    /// This supervisor continues; the reason is logged.
    Stays,
}

impl Running {
    /// Opens a rendezvous for the process that asked, and hands everything over to it.
    pub(in crate::serve) async fn hand_over(
        &mut self,
        pid: u32,
        answer: oneshot::Sender<Result<PathBuf, String>>,
        asks: &mut mpsc::Receiver<Asked>,
    ) -> Outcome {
        let meeting = match Meeting::arrange(&self.config().runtime_dir) {
            Ok(meeting) => meeting,
            Err(error) => {
                tracing::error!(%error, "nothing is handed over");
                // The client may have gone away.
                let _ = answer.send(Err(format!("{error}; look at the log of the supervisor that runs")));
                return Outcome::Stays;
            }
        };
        let _ = answer.send(Ok(meeting.path().to_owned()));
        tracing::info!(pid, "another supervisor asks to take over");
        let tried = tokio::select! {
            tried = self.try_to(meeting, pid) => tried,
            () = refuse_others(asks, pid) => Err(LineError::Ended.into()),
        };
        match tried {
            Ok(()) => {
                tracing::info!("handed over to pid {pid}");
                Outcome::Gone
            }
            Err(error) => {
                tracing::error!(pid, "nothing was handed over, serving on: {error}");
                Outcome::Stays
            }
        }
    }

    async fn try_to(&mut self, meeting: Meeting, pid: u32) -> Result<(), NotTaken> {
        let line = meeting.wait_for(pid).await?;
        self.freeze(self.grace()).await;
        let taken = self.offer(&line).await;
        if let Err(error @ (NotTaken::Pack(_) | NotTaken::Meet(_))) = &taken {
            // A successor that still exists learns the reason.
            let _ = line.failed(&error.to_string()).await;
        }
        taken
    }

    async fn offer(&mut self, line: &Line) -> Result<(), NotTaken> {
        let parcel = self.pack().await?;
        // From here on the successor may control the processes, so we must not.
        self.registry.pause();
        line.offer(parcel.as_fd()).await?;
        drop(parcel);
        line.hear(Kind::Taken, TAKEN_WITHIN).await?;
        // Without this message the successor exits, so it is always clear which supervisor has the processes.
        Ok(line.gone().await?)
    }
}

/// Only one handover at a time: other requests are refused with the pid of the first.
async fn refuse_others(asks: &mut mpsc::Receiver<Asked>, pid: u32) {
    while let Some(asked) = asks.recv().await {
        match asked {
            // A later request reaches the successor, or us.
            Asked::Shutdown(answer) => drop(answer),
            Asked::HandOver { answer, .. } => {
                let _ = answer
                    .send(Err(format!("another supervisor (pid {pid}) is taking over: wait until it has")));
            }
        }
    }
}
