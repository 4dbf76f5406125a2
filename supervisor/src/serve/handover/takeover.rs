//! To a supervisor that asked on `host.sock`: the old one's side.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::document::PackError;
use super::meeting::{MeetError, Meeting};
use super::wire::{Kind, Line, LineError};
use crate::host::Asked;
use crate::serve::running::Running;

/// How long the other one may take from the offer to its having taken over: to open the database, which has half a minute, and
/// to speak to each plugin. One that takes longer is given up, and we go on.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// Why nobody took over.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error(transparent)]
    Meet(#[from] MeetError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error("the other supervisor did not take over: {0}")]
    Line(#[from] LineError),
}

/// What came of it.
pub(in crate::serve) enum Outcome {
    /// The other one has everything.
    Gone,
    /// We go on; the reason is in the log.
    Stays,
}

impl Running {
    /// Arranges a meeting with the process that asked, and hands everything over to it.
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
                // Whoever asked may have gone.
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
            // It learns why; one that is gone does not need to.
            let _ = line.failed(&error.to_string()).await;
        }
        taken
    }

    async fn offer(&mut self, line: &Line) -> Result<(), NotTaken> {
        let parcel = self.pack().await?;
        // From here on the other one may act on the processes, and we must not.
        self.registry.pause();
        line.offer(parcel.as_fd()).await?;
        drop(parcel);
        line.hear(Kind::Taken, TAKEN_WITHIN).await?;
        // It goes if it does not hear this, so that there is never a doubt who has them.
        Ok(line.gone().await?)
    }
}

/// One at a time: whoever else asks meanwhile learns who was first.
async fn refuse_others(asks: &mut mpsc::Receiver<Asked>, pid: u32) {
    while let Some(asked) = asks.recv().await {
        match asked {
            // Whoever asks again later finds the successor, or us.
            Asked::Shutdown(answer) => drop(answer),
            Asked::HandOver { answer, .. } => {
                let _ = answer
                    .send(Err(format!("another supervisor (pid {pid}) is taking over: wait until it has")));
            }
        }
    }
}
