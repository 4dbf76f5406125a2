//! The state of one attempt to start a plugin; it stays available after the attempt failed.

use std::sync::Arc;
use std::time::Duration;

use talon_plugin_client::{Capability, Client};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::error::{LastOutput, LaunchError, LaunchStep};
use super::handshake_wait::HandshakeOutput;
use super::last_good::{LastGoodProgram, ProgramSource};
use super::process::{Exit, HandoverState, Process};
use super::spawn::SpawnedProcess;
use crate::stdio::LastLines;
use crate::traits::start::StartedProcess;

/// How long the cleanup of a failed start may take before its error is returned anyway. Everything is killed
/// by then, so this passes only on a heavily loaded machine.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for a process's exit to be reported, or for its last output.
pub(super) const LAST_OUTPUT_WAIT: Duration = Duration::from_secs(1);

/// The state of an attempt; it stays available after the attempt failed.
pub(super) struct Attempt {
    pub(super) step: LaunchStep,
    pub(super) process: Option<Process>,
    pub(super) output: Option<HandshakeOutput>,
    pub(super) stderr_task: Option<JoinHandle<()>>,
    pub(super) last_words: LastLines,
    /// The program, once it was chosen; remembered if it becomes ready.
    pub(super) program: Option<LastGoodProgram>,
    /// Where the program comes from.
    pub(super) program_source: ProgramSource,
    /// The blocking part, while it runs. It cannot be interrupted, so a cancelled attempt waits for it.
    pub(super) spawning: Option<JoinHandle<Result<SpawnedProcess, LaunchError>>>,
}

/// The results of a successful attempt, apart from its process.
pub(super) struct ReadyPlugin {
    pub(super) client: Client,
    pub(super) capability: Arc<Capability>,
    pub(super) handover_state: HandoverState,
}

impl ReadyPlugin {
    pub(super) fn into_started(self, process: Process, fingerprint: Option<String>) -> StartedProcess {
        let Self { client, capability, handover_state } = self;
        let HandoverState { digest, dialect, report, .. } = &handover_state;
        let (digest, dialect, report) = (digest.clone(), *dialect, report.clone());
        process.set_ready(HandoverState { fingerprint, ..handover_state });
        StartedProcess {
            process: Arc::new(process),
            client: Arc::new(client),
            capability,
            report,
            digest,
            dialect,
            taken_over: None,
        }
    }
}

/// How an attempt ended that did not fail.
pub(super) enum AttemptOutcome {
    Ready(Box<ReadyPlugin>),
    /// The plugin speaks the oldest protocol and has to be started behind the bridge.
    NeedsBridge,
    /// It was started behind the bridge because its program needed it, but the program has changed.
    ProgramChanged,
}

/// Why an attempt failed, before the plugin's last output is known.
pub(super) enum AttemptFailure {
    Error(LaunchError),
    Exited(Exit),
    Closed,
}

impl<E: Into<LaunchError>> From<E> for AttemptFailure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// A plugin's last output, and the step during which its start ended.
pub(super) struct AttemptReport(pub(super) LastOutput, LaunchStep);

impl AttemptReport {
    pub(super) fn into_error(self, failure: AttemptFailure) -> LaunchError {
        let Self(words, step) = self;
        match failure {
            AttemptFailure::Error(error) => error,
            AttemptFailure::Exited(exit) => LaunchError::Exited { exit, step, words },
            AttemptFailure::Closed => LaunchError::Closed { words },
        }
    }
}

impl Attempt {
    pub(super) fn new() -> Self {
        Self {
            step: LaunchStep::Check,
            process: None,
            output: None,
            stderr_task: None,
            last_words: LastLines::default(),
            program: None,
            program_source: ProgramSource::Disk,
            spawning: None,
        }
    }

    /// Kills what was started, waits until it is gone, and reads its last output.
    pub(super) async fn clean_up(mut self, mut process: Option<Process>) -> AttemptReport {
        if let Some(spawning) = self.spawning.take()
            && let Ok(Ok(spawned)) = spawning.await
        {
            process = Some(spawned.process);
        }
        if let Some(process) = &process {
            process.kill_all();
            // If it does not end in time, the process's own task keeps waiting.
            let _ = timeout(CLEANUP_TIMEOUT, process.gone()).await;
        }
        let rest = async {
            if let Some(HandshakeOutput { reader, splitter, logger: scribe }) = self.output.take() {
                reader.drain(splitter, scribe, std::future::ready(())).await;
            }
            if let Some(errors) = self.stderr_task.take() {
                let _ = errors.await;
            }
        };
        let _ = timeout(LAST_OUTPUT_WAIT, rest).await;
        AttemptReport(LastOutput(self.last_words.joined()), self.step)
    }
}
