//! What is known of one attempt to start a plugin, also after it was given up.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Spawned;
use super::error::{LaunchError, Step, Words};
use super::kept::{LastGood, Took};
use super::process::{Exit, Process};
use super::wait::Output;
use crate::stdio::LastWords;

/// How long a failed start may take to be cleared away before its error is told all the same. Everything is
/// killed by then, so this passes only on a machine that hardly moves.
const CLEARING: Duration = Duration::from_secs(10);

/// How long the news of an exit, or the last lines of a process that is gone, may take to arrive.
pub(super) const LAST_NEWS: Duration = Duration::from_secs(1);

/// What is known of an attempt, also after it was given up.
pub(super) struct Attempt {
    pub(super) step: Step,
    pub(super) process: Option<Process>,
    pub(super) output: Option<Output>,
    pub(super) errors: Option<JoinHandle<()>>,
    pub(super) last_words: LastWords,
    /// What is executed, once it was chosen, for when it comes up.
    pub(super) program: Option<LastGood>,
    /// Where that is from.
    pub(super) took: Took,
    /// The blocking part, while it runs; it cannot be interrupted, so whoever gives up waits for it.
    pub(super) spawning: Option<JoinHandle<Result<Spawned, LaunchError>>>,
}

/// Why an attempt failed, before what the plugin said last is known.
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

/// What a plugin said last, and during which step its start ended.
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

    /// Kills what there is, waits until it is gone, and reads what it said last.
    pub(super) async fn clear(mut self, mut process: Option<Process>) -> LastSeen {
        if let Some(spawning) = self.spawning.take()
            && let Ok(Ok(spawned)) = spawning.await
        {
            process = Some(spawned.process);
        }
        if let Some(process) = &process {
            process.kill_all();
            // If it will not go now, the process's own task goes on waiting.
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
