//! A start in separate steps, for callers that inspect each one: [`Launcher::launch`] does the same in one
//! call.

use std::sync::Arc;

use talon_plugin_client::Client;
use talon_plugin_client::connect::{ClientIdentity, Target};
use talon_plugin_client::handshake::{Handshake, MAX_LINE_BYTES};
use talon_plugin_config::spec::{Dialect, PluginSpec};
use talon_wire::frames::FrameLimits;
use tokio::time::{Instant, timeout, timeout_at};

use super::attempt::{Attempt, AttemptFailure, LAST_OUTPUT_WAIT};
use super::error::{LaunchError, LaunchStep};
use super::handshake_wait::{self, HandshakeOutput, HandshakeWait};
use super::process::Process;
use super::spawn::SpawnedProcess;
use super::{Launcher, framed, setup};
use crate::logs::{LogSink, Stream};
use crate::rundir::PrivateDir;
use crate::stdio::{LineSplitter, StreamLogger};

/// A started process before its handshake. Dropping it kills the process and everything it started.
pub(crate) struct StepwiseStart {
    attempt: Attempt,
    process: Process,
    dir: Arc<PrivateDir>,
    report: talon_jail::Report,
    /// The client side of AutoMTLS, if it is used.
    identity: Option<ClientIdentity>,
    frames: FrameLimits,
    logs: LogSink,
    stray_lines: usize,
}

impl Launcher {
    /// Starts the program in its jail. From here on its output is read into `logs`.
    pub(crate) async fn start_stepwise(
        &self,
        spec: &PluginSpec,
        deadline: Instant,
        logs: &LogSink,
    ) -> Result<StepwiseStart, LaunchError> {
        let _turn = self.starts.acquire().await.map_err(|_| LaunchError::Stopping)?;
        let mut attempt = Attempt::new();
        let spawned = self.spawn(&mut attempt, spec, 0, (None, deadline), logs).await?;
        let SpawnedProcess { process, dir, stdout, stderr, report, identity, .. } = spawned;
        let scribe = |stream| StreamLogger::new(logs.clone(), 0, stream, attempt.last_words.clone());
        let line_bytes = logs.line_bytes();
        let gone = process.gone_signal();
        attempt.stderr_task =
            Some(tokio::spawn(stderr.drain(LineSplitter::new(line_bytes), scribe(Stream::Stderr), gone)));
        attempt.output = Some(HandshakeOutput {
            reader: stdout,
            splitter: LineSplitter::new(line_bytes.max(MAX_LINE_BYTES + 1)),
            logger: scribe(Stream::Stdout),
        });
        attempt.step = LaunchStep::Handshake;
        let (frames, logs) = (self.shared.settings.frames, logs.clone());
        Ok(StepwiseStart { attempt, process, dir, report, identity, frames, logs, stray_lines: 0 })
    }
}

impl StepwiseStart {
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn monitor_pid(&self) -> u32 {
        self.process.monitor_pid()
    }

    pub(crate) fn dir(&self) -> &PrivateDir {
        &self.dir
    }

    pub(crate) fn report(&self) -> &talon_jail::Report {
        &self.report
    }

    /// How many lines came on standard output before the handshake line.
    pub(crate) fn stray_lines(&self) -> usize {
        self.stray_lines
    }

    /// Waits for the handshake line. Afterwards a task reads the rest of standard output.
    pub(crate) async fn handshake(
        &mut self,
        spec: &PluginSpec,
        deadline: Instant,
    ) -> Result<Handshake, LaunchError> {
        let process = &self.process;
        let Some(output) = &mut self.attempt.output else { return Err(LaunchError::Stopping) };
        let waiting = async {
            tokio::select! {
                biased;
                waited = handshake_wait::wait_counting_stray_lines(output, spec, &mut self.stray_lines) => waited.map_err(AttemptFailure::from),
                exit = process.exited() => Err(AttemptFailure::Exited(exit)),
            }
        };
        let failure = match timeout_at(deadline, waiting).await {
            Ok(Ok(HandshakeWait::Handshake(handshake))) => {
                if let Some(HandshakeOutput { reader, splitter, logger: scribe }) = self.attempt.output.take()
                {
                    tokio::spawn(reader.drain(splitter, scribe, self.process.gone_signal()));
                }
                return Ok(handshake);
            }
            Ok(Ok(HandshakeWait::Eof)) => match timeout(LAST_OUTPUT_WAIT, process.exited()).await {
                Ok(exit) => AttemptFailure::Exited(exit),
                Err(_) => AttemptFailure::Closed,
            },
            Ok(Err(failure)) => failure,
            Err(_) => {
                let step = self.attempt.step;
                let words = self.clean_up().await;
                return Err(LaunchError::TimedOut {
                    after: spec.lifecycle.start_timeout,
                    step,
                    words: words.0,
                });
            }
        };
        Err(self.clean_up().await.into_error(failure))
    }

    /// Whether it turns out to speak the oldest protocol, which needs a bridge.
    pub(crate) async fn is_framed(
        &self,
        spec: &PluginSpec,
        handshake: &Handshake,
    ) -> Result<bool, LaunchError> {
        if !framed::may_be_framed(spec, handshake.dialect) {
            return Ok(false);
        }
        Ok(framed::hangs_up_on_http2(&self.target(spec, handshake)?).await)
    }

    fn target(&self, spec: &PluginSpec, handshake: &Handshake) -> Result<Target, LaunchError> {
        let (uid, monitor_pid) = (self.process.uid(), self.process.monitor_pid());
        setup::target(spec, handshake, self.identity.as_ref(), &self.dir, uid, monitor_pid, self.frames)
    }

    /// Connects to the address in the handshake.
    pub(crate) async fn connect(
        &self,
        spec: &PluginSpec,
        handshake: &Handshake,
    ) -> Result<Client, LaunchError> {
        let client = setup::connect(spec, self.target(spec, handshake)?, handshake.dialect).await?;
        if handshake.dialect == Dialect::GoPlugin {
            let scribe =
                |stream| StreamLogger::new(self.logs.clone(), 0, stream, self.attempt.last_words.clone());
            let scribes = [scribe(Stream::Stdout), scribe(Stream::Stderr)];
            let gone = self.process.gone_signal();
            tokio::spawn(setup::drain_output(client.clone(), scribes, self.logs.line_bytes(), gone));
            tokio::spawn(setup::hold_broker_open(client.clone(), self.process.gone_signal()));
        }
        Ok(client)
    }

    /// Kills the process and reads its last output.
    async fn clean_up(&mut self) -> super::attempt::AttemptReport {
        self.process.kill_all();
        let attempt = std::mem::replace(&mut self.attempt, Attempt::new());
        // Bounded as after any failed start; the handle on the process stays in `self`.
        let _ = timeout(LAST_OUTPUT_WAIT, self.process.gone()).await;
        attempt.clean_up(None).await
    }
}
