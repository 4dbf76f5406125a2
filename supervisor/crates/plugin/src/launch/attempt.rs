//! The state of one attempt to start a plugin; it stays available after the attempt failed.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Spawned;
use super::error::{LaunchError, Step, Words};
use super::kept::{LastGood, Took};
use super::process::{Exit, Process};
use super::wait::Output;
use crate::stdio::LastWords;

/// How long the cleanup of a failed start may take before its error is returned anyway. Everything is killed
/// by then, so this passes only on a heavily loaded machine.
const CLEARING: Duration = Duration::from_secs(10);

/// How long to wait for a process's exit to be reported, or for its last output.
pub(super) const LAST_NEWS: Duration = Duration::from_secs(1);

/// The state of an attempt; it stays available after the attempt failed.
pub(super) struct Attempt {
    pub(super) step: Step,
    pub(super) process: Option<Process>,
    pub(super) output: Option<Output>,
    pub(super) errors: Option<JoinHandle<()>>,
    pub(super) last_words: LastWords,
    /// The program, once it was chosen; remembered if it becomes ready.
    pub(super) program: Option<LastGood>,
    /// Where the program comes from.
    pub(super) took: Took,
    /// The blocking part, while it runs. It cannot be interrupted, so a cancelled attempt waits for it.
    pub(super) spawning: Option<JoinHandle<Result<Spawned, LaunchError>>>,
}

/// Why an attempt failed, before the plugin's last output is known.
pub(super) enum Failure {
    Error(LaunchError),
    Exited(Exit),
    Closed,
}

impl<E: Into<LaunchError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// A plugin's last output, and the step during which its start ended.
pub(super) struct LastSeen(pub(super) Words, Step);

impl LastSeen {
    pub(super) fn tell(self, failure: Failure) -> LaunchError {
        let Self(words, step) = self;
        match failure {
            Failure::Error(error) => error,
            Failure::Exited(exit) => LaunchError::Exited { exit, step, words },
            Failure::Closed => LaunchError::Closed { words },
        }
    }
}

impl Attempt {
    pub(super) fn new() -> Self {
        Self {
            step: Step::Check,
            process: None,
            output: None,
            errors: None,
            last_words: LastWords::default(),
            program: None,
            took: Took::Disk,
            spawning: None,
        }
    }

    /// Kills what was started, waits until it is gone, and reads its last output.
    pub(super) async fn clear(mut self, mut process: Option<Process>) -> LastSeen {
        if let Some(spawning) = self.spawning.take()
            && let Ok(Ok(spawned)) = spawning.await
        {
            process = Some(spawned.process);
        }
        if let Some(process) = &process {
            process.kill_all();
            // If it does not end in time, the process's own task keeps waiting.
            let _ = timeout(CLEARING, process.gone()).await;
        }
        let rest = async {
            if let Some(Output { reader, splitter, scribe }) = self.output.take() {
                reader.drain(splitter, scribe, std::future::ready(())).await;
            }
            if let Some(errors) = self.errors.take() {
                let _ = errors.await;
            }
        };
        let _ = timeout(LAST_NEWS, rest).await;
        LastSeen(Words(self.last_words.get()), self.step)
    }
}
