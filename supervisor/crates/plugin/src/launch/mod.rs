//! From a spec to a process that is ready for calls, or to the reason why there is none.
//!
//! ```text
//! check ─► private directory ─► spawn ─► handshake ─► connect ─► Init ─► Capabilities ─► SERVING
//!   files, digest, uid          jail     stdout       socket,                            health
//!                                                     uid, process
//! ```
//!
//! If a plugin turns out to speak the oldest protocol, the attempt is cleaned up and repeated behind a bridge
//! ([`framed`]).
//!
//! For a plugin whose replacement failed, the last program that became ready is checked and started instead
//! ([`kept`]).
//!
//! A process that another supervisor handed over skips all of this: it is taken from the adoption pool ([`adopt`]).
//!
//! On any failure, and if the caller cancels, nothing of the attempt is left: no process, no socket, no directory.

mod adopt;
mod adoption_pool;
mod attempt;
mod error;
mod framed;
mod handover;
mod handshake_wait;
mod isolation;
mod last_good;
mod last_good_unavailable;
mod process;
mod program;
mod service;
mod setup;
mod shared;
mod spawn;
mod stepwise;

use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use talon_jail::{Mode, Stage};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::adoption_pool::AdoptionPool;
use self::attempt::{Attempt, AttemptFailure, LAST_OUTPUT_WAIT};
pub(crate) use self::error::LaunchError;
use self::error::LaunchStep;
use self::framed::FramedPlugins;
use self::handshake_wait::{HandshakeOutput, HandshakeWait};
pub(crate) use self::last_good::{LastGoodCache, ProgramChoice};
use self::last_good::{LastGoodProgram, ProgramSource};
use self::process::HandoverState;
pub(crate) use self::process::{Exit, Process};
use self::shared::Shared;
use self::spawn::SpawnedProcess;
pub(crate) use self::stepwise::StepwiseStart;
use talon_plugin_client::handshake::MAX_LINE_BYTES;
use talon_plugin_client::{Capability, Client};
use talon_plugin_config::fingerprint::fingerprint;
use talon_plugin_config::privileges::may_change_uid;
use talon_plugin_config::spec::{Dialect, PluginSpec};

use crate::handover::{Leftovers, ReceivedHandover};
use crate::identity::Identities;
use crate::logs::{Level, LogSink, Stream};
use crate::rundir::{RuntimeDir, prepare_data_dir};
use crate::settings::{Settings, SetupError};
use crate::stdio::{LineSplitter, StreamLogger};
use crate::traits::{LaunchProgress, StartedProcess};
use crate::view::Views;

/// Starts processes.
#[derive(Debug)]
pub(crate) struct Launcher {
    shared: Arc<Shared>,
    starts: Arc<Semaphore>,
    framed: FramedPlugins,
    /// Processes that another supervisor handed over.
    adoption_pool: AdoptionPool,
}

/// The results of a successful attempt, apart from its process.
struct ReadyPlugin {
    client: Client,
    capability: Arc<Capability>,
    handover_state: HandoverState,
}

/// How an attempt ended that did not fail.
enum AttemptOutcome {
    Ready(Box<ReadyPlugin>),
    /// The plugin speaks the oldest protocol and has to be started behind the bridge.
    NeedsBridge,
    /// It was started behind the bridge because its program needed it, but the program has changed.
    ProgramChanged,
}

impl Launcher {
    /// Prepares everything that starts need: the runtime directory with its lock, the directory for views, the uids.
    /// Blocking.
    pub(crate) fn new(settings: Arc<Settings>, stage: Arc<Stage>) -> Result<Self, SetupError> {
        Self::prepare(settings, stage, None)
    }

    /// Like [`Launcher::new`], with the processes of another supervisor. Within a tokio runtime.
    pub(crate) fn prepare(
        settings: Arc<Settings>,
        stage: Arc<Stage>,
        inherited: Option<ReceivedHandover>,
    ) -> Result<Self, SetupError> {
        // Otherwise a plugin with the supervisor's uid could read its environment and memory, which hold
        // every plugin's secrets, and take its descriptors. The price: only root can debug it, and it dumps
        // no core.
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "plugins that share the supervisor's uid may read its memory");
        }
        let range = settings.uid_range.clone();
        let left = inherited.map(|inherited| Leftovers::from_handover(inherited, &settings.runtime_dir));
        let Leftovers { processes, runtime, views, mut unpacker } = left.unwrap_or_default();
        let runtime = Arc::new(RuntimeDir::take_over(&settings.runtime_dir, range.is_some(), runtime)?);
        let data_dir = prepare_data_dir(&settings.data_dir, range.is_some())?;
        let views = Views::take_over(&settings.data_dir, runtime.path(), views)?;
        let identities = range.map(|range| Identities::open(&settings.data_dir, range)).transpose()?;
        let starts = Arc::new(Semaphore::new(settings.start_concurrency.max(1)));
        let may_change_uid = may_change_uid();
        let kept: Vec<_> = processes.iter().filter_map(|process| process.group.clone()).collect();
        let groups =
            spawn::open_groups(runtime.path(), &kept.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let shelf = AdoptionPool::unpack(processes, &mut unpacker, &runtime, &views);
        let shared = Shared {
            settings,
            stage,
            runtime,
            data_dir,
            views,
            identities,
            groups,
            may_change_uid,
            readers: TaskTracker::new(),
        };
        Ok(Self { shared: Arc::new(shared), starts, framed: FramedPlugins::default(), adoption_pool: shelf })
    }

    /// Announces a plugin that is about to be started.
    pub(crate) fn announce(&self, spec: &PluginSpec) {
        if let Some(identities) = &self.shared.identities
            && spec.enabled
            && spec.sandbox.mode != Mode::Off
        {
            identities.announce(&spec.name);
        }
    }

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
        let fingerprint = {
            let spec = spec.clone();
            tokio::task::spawn_blocking(move || fingerprint(&spec)).await.ok().flatten()
        };
        let last_good = choice.last_good();
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
                    let ReadyPlugin { client, capability, handover_state: standing } = *ready;
                    let HandoverState { digest, dialect, report, .. } = &standing;
                    if bridged.is_some() {
                        self.framed.remember(&spec.name, digest);
                    }
                    let (digest, dialect, report) = (digest.clone(), *dialect, report.clone());
                    process.set_ready(HandoverState { fingerprint, ..standing });
                    choice.log_source(took, instance, logs);
                    choice.remember(attempt.program.take()).await;
                    Ok(StartedProcess {
                        process: Arc::new(process),
                        client: Arc::new(client),
                        capability,
                        report,
                        digest,
                        dialect,
                        taken_over: None,
                    })
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

    /// Removes the supervisor's files from the runtime directory, and the views. Call it when no process is left.
    pub(crate) fn remove_all(&self) {
        self.starts.close();
        self.shared.runtime.clear();
        self.shared.views.clear();
    }

    async fn attempt(
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
        let (gone, monitor_pid) = (process.gone_signal(), process.monitor_pid());
        let process = &*attempt.process.insert(process);

        let scribe = |stream| StreamLogger::new(logs.clone(), instance, stream, attempt.last_words.clone());
        let line_bytes = logs.line_bytes();
        let readers = &self.shared.readers;
        let shared_pipes = (stdout.shared(), stderr.shared());
        attempt.stderr_task =
            Some(readers.spawn(stderr.drain(LineSplitter::new(line_bytes), scribe(Stream::Stderr), gone)));
        let output = attempt.output.insert(HandshakeOutput {
            reader: stdout,
            // One byte more than a handshake may have, so that a longer one is recognized.
            splitter: LineSplitter::new(line_bytes.max(MAX_LINE_BYTES + 1)),
            logger: scribe(Stream::Stdout),
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
        if let Some(HandshakeOutput { reader, splitter, logger: scribe }) = attempt.output.take() {
            readers.spawn(reader.drain(splitter, scribe, process.gone_signal()));
        }

        let target = setup::target(spec, &handshake, identity.as_ref(), &dir, uid, monitor_pid)?;
        let socket = target.clone();
        let talking = setup::initialize(
            &mut attempt.step,
            spec,
            target,
            &handshake,
            (logs, instance),
            process,
            (readers, &attempt.last_words),
        );
        let talked = tokio::select! {
            biased;
            talked = talking => talked,
            exit = process.exited() => return Err(AttemptFailure::Exited(exit)),
        };
        let (client, capability) = match talked {
            Ok(talked) => talked,
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
        let (stdout, stderr) = shared_pipes;
        let standing =
            HandoverState { fingerprint: None, digest, handshake, dialect, identity, report, stdout, stderr };
        Ok(AttemptOutcome::Ready(Box::new(ReadyPlugin { client, capability, handover_state: standing })))
    }

    /// The blocking part: everything up to a running program.
    async fn spawn(
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
        // Runs to its end even if this future is dropped; then the process is killed when the result is dropped.
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

/// Re-raises a panic of blocking work, so that the driver catches it.
fn flatten_join<T>(result: Result<Result<T, LaunchError>, tokio::task::JoinError>) -> Result<T, LaunchError> {
    match result {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(LaunchError::Stopping),
    }
}
