//! One attempt to start a plugin, step by step.

use std::sync::Arc;

use talon_plugin_client::connect::ClientIdentity;
use talon_plugin_client::handshake::{Handshake, MAX_LINE_BYTES};
use talon_plugin_config::spec::{Dialect, PluginSpec};
use tokio::time::{Instant, timeout};

use super::attempt::{Attempt, AttemptFailure, AttemptOutcome, LAST_OUTPUT_WAIT, ReadyPlugin};
use super::blocking::flatten_join;
use super::error::{LaunchError, LaunchStep};
use super::handshake_wait::{self, HandshakeOutput, HandshakeWait};
use super::last_good::{LastGoodProgram, ProgramSource};
use super::process::{HandoverState, Process};
use super::spawn::SpawnedProcess;
use super::{Launcher, framed, setup};
use crate::logs::{Level, LogSink, Stream};
use crate::rundir::PrivateDir;
use crate::stdio::{LineSplitter, SharedPipe, StreamLogger};
use crate::traits::start::LaunchProgress;

/// What is known of a process whose handshake is valid.
struct HandshakeOutcome {
    handshake: Handshake,
    instance: u32,
    dir: Arc<PrivateDir>,
    digest: String,
    /// The client certificate, if its connections are encrypted.
    identity: Option<ClientIdentity>,
    report: talon_jail::Report,
    /// Its standard output and standard error.
    pipes: (SharedPipe, SharedPipe),
}

impl Launcher {
    /// One attempt; what it started stays in `attempt`.
    pub(super) async fn attempt(
        &self,
        attempt: &mut Attempt,
        spec: &PluginSpec,
        (instance, generation): (u32, u64),
        program: (Option<Arc<LastGoodProgram>>, Instant),
        logs: &LogSink,
        progress: &(dyn Fn(LaunchProgress) + Send + Sync),
    ) -> Result<AttemptOutcome, AttemptFailure> {
        let SpawnedProcess { process, dir, stdout, stderr, report, digest, identity } =
            self.spawn(attempt, spec, instance, program, logs).await?;
        let uid = process.uid();
        // The last good program speaks a known dialect.
        let is_known = attempt.program_source == ProgramSource::LastGood;
        if spec.dialect == Dialect::OpenTalonV0
            && !is_known
            && self.framed.digest(&spec.name).is_some_and(|framed| framed != digest)
        {
            attempt.process = Some(process);
            return Ok(AttemptOutcome::ProgramChanged);
        }
        progress(LaunchProgress::Started { pid: process.pid(), uid });
        logs.note(
            instance,
            Level::Info,
            format!("started as pid {}, uid {uid}, start {generation}", process.pid()),
        );
        let gone = process.gone_signal();
        let process = &*attempt.process.insert(process);

        let logger = |stream| StreamLogger::new(logs.clone(), instance, stream, attempt.last_words.clone());
        let line_bytes = logs.line_bytes();
        let readers = &self.shared.readers;
        let pipes = (stdout.shared(), stderr.shared());
        attempt.stderr_task =
            Some(readers.spawn(stderr.drain(LineSplitter::new(line_bytes), logger(Stream::Stderr), gone)));
        let output = attempt.output.insert(HandshakeOutput {
            reader: stdout,
            // One byte more than a handshake may have, so that a longer one is recognized.
            splitter: LineSplitter::new(line_bytes.max(MAX_LINE_BYTES + 1)),
            logger: logger(Stream::Stdout),
        });

        attempt.step = LaunchStep::Handshake;
        let waited = tokio::select! {
            biased;
            waited = handshake_wait::wait_for_handshake(output, spec) => waited?,
            exit = process.exited() => return Err(AttemptFailure::Exited(exit)),
        };
        let handshake = match waited {
            HandshakeWait::Handshake(handshake) => handshake,
            // Usually the process has ended, and its exit status says more.
            HandshakeWait::Eof => match timeout(LAST_OUTPUT_WAIT, process.exited()).await {
                Ok(exit) => return Err(AttemptFailure::Exited(exit)),
                Err(_) => return Err(AttemptFailure::Closed),
            },
        };
        progress(LaunchProgress::Handshaken);
        logs.note(instance, Level::Debug, format!("handshake: {handshake}"));
        if let Some(HandshakeOutput { reader, splitter, logger }) = attempt.output.take() {
            readers.spawn(reader.drain(splitter, logger, process.gone_signal()));
        }
        self.initialize(
            attempt,
            spec,
            HandshakeOutcome { handshake, instance, dir, digest, identity, report, pipes },
            logs,
        )
        .await
    }

    /// From the handshake to declared capabilities.
    async fn initialize(
        &self,
        attempt: &mut Attempt,
        spec: &PluginSpec,
        handshaken: HandshakeOutcome,
        logs: &LogSink,
    ) -> Result<AttemptOutcome, AttemptFailure> {
        let HandshakeOutcome { handshake, instance, dir, digest, identity, report, pipes: (stdout, stderr) } =
            handshaken;
        let Attempt { process, step, last_words, program_source, .. } = attempt;
        let process = process.as_ref().expect("only a process shakes hands, and the attempt keeps it");
        let is_known = *program_source == ProgramSource::LastGood;
        let (uid, monitor_pid, frames) = (process.uid(), process.monitor_pid(), self.shared.settings.frames);
        let target = setup::target(spec, &handshake, identity.as_ref(), &dir, uid, monitor_pid, frames)?;
        let socket = target.clone();
        let initializing = setup::initialize(
            step,
            spec,
            target,
            &handshake,
            (logs, instance),
            process,
            (&self.shared.readers, last_words),
        );
        let outcome = tokio::select! {
            biased;
            outcome = initializing => outcome,
            exit = process.exited() => return Err(AttemptFailure::Exited(exit)),
        };
        let (client, capability) = match outcome {
            Ok(outcome) => outcome,
            Err(error)
                if !is_known && error.may_be_an_exit() && framed::may_be_framed(spec, handshake.dialect) =>
            {
                let hangs_up = tokio::select! {
                    biased;
                    exit = process.exited() => return Err(AttemptFailure::Exited(exit)),
                    hangs_up = framed::hangs_up_on_http2(&socket) => hangs_up,
                };
                return if hangs_up {
                    Ok(AttemptOutcome::NeedsBridge)
                } else {
                    Err(prefer_exit(error, process).await)
                };
            }
            Err(error) => return Err(prefer_exit(error, process).await),
        };
        let dialect = match spec.dialect {
            Dialect::OpenTalonV0 => spec.dialect,
            _ => handshake.dialect,
        };
        let handover_state =
            HandoverState { fingerprint: None, digest, handshake, dialect, identity, report, stdout, stderr };
        Ok(AttemptOutcome::Ready(Box::new(ReadyPlugin { client, capability, handover_state })))
    }

    /// The blocking part: everything up to a running program.
    pub(super) async fn spawn(
        &self,
        attempt: &mut Attempt,
        spec: &PluginSpec,
        instance: u32,
        (last_good, deadline): (Option<Arc<LastGoodProgram>>, Instant),
        logs: &LogSink,
    ) -> Result<SpawnedProcess, LaunchError> {
        let (shared, spec, logs) = (self.shared.clone(), spec.clone(), logs.clone());
        let chosen = {
            let shared = shared.clone();
            let spec = spec.clone();
            tokio::task::spawn_blocking(move || Ok(shared.choose_program(&spec, last_good.as_deref())))
        };
        let (took, checked) = flatten_join(chosen.await)?;
        attempt.program_source = took;
        let (prepared, identity) = checked?;
        attempt.program = Some(LastGoodProgram::new(prepared.clone(), spec.dialect));
        attempt.step = LaunchStep::Spawn;
        // Runs to its end even if this future is dropped; then the process is killed when the result is
        // dropped.
        let spawning = attempt.spawning.insert(tokio::task::spawn_blocking(move || {
            shared.spawn(&spec, instance, prepared, identity, deadline, &logs)
        }));
        let spawned = spawning.await;
        attempt.spawning = None;
        flatten_join(spawned)
    }
}

/// A connection breaks shortly before the exit that broke it is reported; the exit says more.
async fn prefer_exit(error: LaunchError, process: &Process) -> AttemptFailure {
    match timeout(LAST_OUTPUT_WAIT, process.exited()).await {
        Ok(exit) if error.may_be_an_exit() => AttemptFailure::Exited(exit),
        _ => error.into(),
    }
}
