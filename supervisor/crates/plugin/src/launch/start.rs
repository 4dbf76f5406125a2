//! The whole start of a plugin: attempts, until one is ready or fails for good.

use std::io::ErrorKind;
use std::path::Path;

use talon_plugin_config::fingerprint::fingerprint;
use talon_plugin_config::spec::PluginSpec;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptOutcome};
use super::error::LaunchError;
use super::last_good::ProgramChoice;
use super::{Launcher, framed};
use crate::logs::{Level, LogSink};
use crate::traits::start::{LaunchProgress, StartedProcess};

impl Launcher {
    /// Starts a plugin completely, bounded by the spec's start timeout, which begins when the start gets its
    /// turn: a plugin that hangs uses up only its own time.
    ///
    /// On an error, and so after `cancel`, nothing is left behind. Dropping the future kills what was
    /// started; the cleanup follows a moment later.
    pub(crate) async fn launch(
        &self,
        spec: &PluginSpec,
        (instance, generation): (u32, u64),
        choice: ProgramChoice<'_>,
        logs: &LogSink,
        progress: &(dyn Fn(LaunchProgress) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<StartedProcess, LaunchError> {
        // An adopted process runs already, so it does not wait for a turn.
        if let Some(running) = self.take_over(spec, instance, choice, logs, progress, cancel).await? {
            return Ok(running);
        }
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LaunchError::Cancelled),
            turn = self.starts.acquire() => turn.map_err(|_| LaunchError::Stopping)?,
        };
        let after = spec.lifecycle.start_timeout;
        let deadline = Instant::now() + after;
        let (fingerprint, is_gone) = {
            let spec = spec.clone();
            let looking = tokio::task::spawn_blocking(move || (fingerprint(&spec), is_gone(&spec.program)));
            looking.await.unwrap_or_default()
        };
        let last_good = choice.last_good(is_gone);
        let is_framed = match &last_good {
            Some(last_good) => last_good.is_framed(),
            None => self.framed.digest(&spec.name).is_some(),
        };
        let mut bridged = is_framed.then(|| framed::behind_bridge(spec));
        loop {
            let spec = bridged.as_ref().unwrap_or(spec);
            let mut attempt = Attempt::new();
            let program = (last_good.clone(), deadline);
            let work = self.attempt(&mut attempt, spec, (instance, generation), program, logs, progress);
            let outcome = cancel.run_until_cancelled(timeout_at(deadline, work)).await;
            let took = attempt.program_source;
            return match (outcome, attempt.process.take()) {
                (None, process) => {
                    attempt.clean_up(process).await;
                    Err(LaunchError::Cancelled)
                }
                (Some(Ok(Ok(AttemptOutcome::Ready(ready)))), Some(process)) => {
                    if bridged.is_some() {
                        self.framed.remember(&spec.name, &ready.handover_state.digest);
                    }
                    choice.note_source(took, spec, instance, logs);
                    choice.remember(attempt.program.take()).await;
                    Ok(ready.into_started(process, fingerprint))
                }
                (Some(Ok(Ok(AttemptOutcome::NeedsBridge))), process) => {
                    attempt.clean_up(process).await;
                    logs.note(instance, Level::Info, framed::FRAMED_DETECTED);
                    bridged = Some(framed::behind_bridge(spec));
                    continue;
                }
                (Some(Ok(Ok(AttemptOutcome::ProgramChanged))), process) => {
                    attempt.clean_up(process).await;
                    self.framed.forget(&spec.name);
                    bridged = None;
                    continue;
                }
                (Some(Ok(Err(failure))), process) => {
                    Err(took.explain(attempt.clean_up(process).await.into_error(failure)))
                }
                (Some(Err(_) | Ok(Ok(AttemptOutcome::Ready(_)))), process) => {
                    let step = attempt.step;
                    let words = attempt.clean_up(process).await;
                    Err(took.explain(LaunchError::TimedOut { after, step, words: words.0 }))
                }
            };
        }
    }
}

/// Whether there is no program on the disk: it was removed, or its directory was. Blocking.
fn is_gone(program: &Path) -> bool {
    program
        .metadata()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}
