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
mod alone;
mod attempt;
mod error;
mod framed;
mod handover;
mod isolation;
mod kept;
mod process;
mod program;
mod service;
mod shelf;
mod spawn;
mod talk;
mod wait;

use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use talon_jail::{Groups, Mode, Stage};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::alone::Alone;
use self::attempt::{Attempt, Failure, LAST_NEWS};
pub(crate) use self::error::LaunchError;
use self::error::Step;
use self::framed::Framed;
pub(crate) use self::kept::{Choice, Kept};
use self::kept::{LastGood, Took};
use self::process::Standing;
pub(crate) use self::process::{Exit, Process};
use self::shelf::Shelf;
use self::wait::{Output, Waited};
use crate::capability::Capability;
use crate::client::Client;
use crate::connect::ClientIdentity;
use crate::handover::{Counted, Inherited, LeftBehind, fingerprint};
use crate::handshake::MAX_LINE_BYTES;
use crate::identity::{Identities, may_change_uid};
use crate::logs::{Level, LogSink, Stream};
use crate::rundir::{PrivateDir, RuntimeDir, prepare_data_dir};
use crate::settings::{Settings, SetupError};
use crate::spec::{Dialect, PluginSpec};
use crate::stdio::{PipeReader, Scribe, Splitter};
use crate::view::Views;

/// Starts processes.
#[derive(Debug)]
pub(crate) struct Launcher {
    shared: Arc<Shared>,
    starts: Arc<Semaphore>,
    framed: Framed,
    /// Processes that another supervisor handed over.
    shelf: Shelf,
}

#[derive(Debug)]
struct Shared {
    settings: Arc<Settings>,
    stage: Arc<Stage>,
    runtime: Arc<RuntimeDir>,
    /// With symlinks resolved.
    data_dir: PathBuf,
    views: Views,
    identities: Option<Identities>,
    /// Present where cgroups are available for plugins.
    groups: Option<Groups>,
    /// Whether the supervisor can give plugins their own uids.
    may_change_uid: bool,
    /// Tasks that read the output of processes. A supervisor that releases its processes waits for their last lines.
    readers: TaskTracker,
}

/// The progress of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The program was started.
    Started { pid: u32, uid: u32 },
    /// Its handshake is valid.
    Handshaken,
}

/// A process that is ready for calls.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) client: Client,
    pub(crate) capability: Arc<Capability>,
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
    /// The counters from the previous supervisor, if the process was handed over.
    pub(crate) taken_over: Option<Counted>,
}

/// A process that was just started, with its pipes.
struct Spawned {
    process: Process,
    dir: Arc<PrivateDir>,
    stdout: PipeReader,
    stderr: PipeReader,
    report: talon_jail::Report,
    digest: String,
    /// The client certificate, if its connections are encrypted.
    identity: Option<ClientIdentity>,
}

/// The results of a successful attempt, apart from its process.
struct Ready {
    client: Client,
    capability: Arc<Capability>,
    standing: Standing,
}

/// How an attempt ended that did not fail.
enum Came {
    Ready(Box<Ready>),
    /// The plugin speaks the oldest protocol and has to be started behind the bridge.
    Framed,
    /// It was started behind the bridge because its program needed it, but the program has changed.
    Renewed,
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
        inherited: Option<Inherited>,
    ) -> Result<Self, SetupError> {
        // Otherwise a plugin with the supervisor's uid could read its environment and memory, which hold
        // every plugin's secrets, and take its descriptors. The price: only root can debug it, and it dumps
        // no core.
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "plugins that share the supervisor's uid may read its memory");
        }
        let range = settings.uid_range.clone();
        let left = inherited.map(|inherited| LeftBehind::of(inherited, &settings.runtime_dir));
        let LeftBehind { processes, runtime, views, mut unpacker } = left.unwrap_or_default();
        let runtime = Arc::new(RuntimeDir::take_over(&settings.runtime_dir, range.is_some(), runtime)?);
        let data_dir = prepare_data_dir(&settings.data_dir, range.is_some())?;
        let views = Views::take_over(&settings.data_dir, runtime.path(), views)?;
        let identities = range.map(|range| Identities::open(&settings.data_dir, range)).transpose()?;
        let starts = Arc::new(Semaphore::new(settings.start_concurrency.max(1)));
        let may_change_uid = may_change_uid();
        let kept: Vec<_> = processes.iter().filter_map(|process| process.group.clone()).collect();
        let groups = spawn::groups(runtime.path(), &kept.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let shelf = Shelf::fill(processes, &mut unpacker, &runtime, &views);
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
        Ok(Self { shared: Arc::new(shared), starts, framed: Framed::default(), shelf })
    }

    /// Announces a plugin that is about to be started.
    pub(crate) fn expect(&self, spec: &PluginSpec) {
        if let Some(identities) = &self.shared.identities
            && spec.enabled
            && spec.sandbox.mode != Mode::Off
        {
            identities.expect(&spec.name);
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
        choice: Choice<'_>,
        logs: &LogSink,
        progress: &(dyn Fn(Progress) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Running, LaunchError> {
        // An adopted process runs already, so it does not wait for a turn.
        if let Some(running) = self.take_up(spec, instance, choice, logs, progress, cancel).await? {
            return Ok(running);
        }
        let _turn = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LaunchError::CalledOff),
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
            let took = attempt.took;
            return match (outcome, attempt.process.take()) {
                (None, process) => {
                    attempt.clear(process).await;
                    Err(LaunchError::CalledOff)
                }
                (Some(Ok(Ok(Came::Ready(ready)))), Some(process)) => {
                    let Ready { client, capability, standing } = *ready;
                    let Standing { digest, dialect, report, .. } = &standing;
                    if bridged.is_some() {
                        self.framed.remember(&spec.name, digest);
                    }
                    let (digest, dialect, report) = (digest.clone(), *dialect, report.clone());
                    process.stands(Standing { fingerprint, ..standing });
                    choice.tell(took, instance, logs);
                    choice.came_up(attempt.program.take()).await;
                    Ok(Running { process, client, capability, report, digest, dialect, taken_over: None })
                }
                (Some(Ok(Ok(Came::Framed))), process) => {
                    attempt.clear(process).await;
                    logs.note(instance, Level::Info, framed::FOUND);
                    bridged = Some(framed::behind_bridge(spec));
                    continue;
                }
                (Some(Ok(Ok(Came::Renewed))), process) => {
                    attempt.clear(process).await;
                    self.framed.forget(&spec.name);
                    bridged = None;
                    continue;
                }
                (Some(Ok(Err(failure))), process) => {
                    Err(took.told_with(attempt.clear(process).await.tell(failure)))
                }
                (Some(Err(_) | Ok(Ok(Came::Ready(_)))), process) => {
                    let step = attempt.step;
                    let words = attempt.clear(process).await;
                    Err(took.told_with(LaunchError::TimedOut { after, step, words: words.0 }))
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
        program: (Option<Arc<LastGood>>, Instant),
        logs: &LogSink,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Came, Failure> {
        let Spawned { process, dir, stdout, stderr, report, digest, identity } =
            self.spawn(attempt, spec, instance, program, logs).await?;
        let uid = process.uid();
        // The last good program speaks a known dialect.
        let is_known = attempt.took == Took::LastGood;
        if spec.dialect == Dialect::OpenTalonV0
            && !is_known
            && self.framed.digest(&spec.name).is_some_and(|framed| framed != digest)
        {
            attempt.process = Some(process);
            return Ok(Came::Renewed);
        }
        progress(Progress::Started { pid: process.pid(), uid });
        logs.note(
            instance,
            Level::Info,
            format!("started as pid {}, uid {uid}, start {generation}", process.pid()),
        );
        let (gone, monitor_pid) = (process.gone_signal(), process.monitor_pid());
        let process = &*attempt.process.insert(process);

        let scribe = |stream| Scribe::new(logs.clone(), instance, stream, attempt.last_words.clone());
        let line_bytes = logs.line_bytes();
        let readers = &self.shared.readers;
        let shared_pipes = (stdout.shared(), stderr.shared());
        attempt.errors =
            Some(readers.spawn(stderr.drain(Splitter::new(line_bytes), scribe(Stream::Stderr), gone)));
        let output = attempt.output.insert(Output {
            reader: stdout,
            // One byte more than a handshake may have, so that a longer one is recognized.
            splitter: Splitter::new(line_bytes.max(MAX_LINE_BYTES + 1)),
            scribe: scribe(Stream::Stdout),
        });

        attempt.step = Step::Handshake;
        let waited = tokio::select! {
            biased;
            waited = wait::handshake(output, spec) => waited?,
            exit = process.exited() => return Err(Failure::Exited(exit)),
        };
        let handshake = match waited {
            Waited::Line(handshake) => handshake,
            // Usually the process has ended, and its exit status says more.
            Waited::End => match timeout(LAST_NEWS, process.exited()).await {
                Ok(exit) => return Err(Failure::Exited(exit)),
                Err(_) => return Err(Failure::Closed),
            },
        };
        progress(Progress::Handshaken);
        logs.note(instance, Level::Debug, format!("handshake: {handshake}"));
        if let Some(Output { reader, splitter, scribe }) = attempt.output.take() {
            readers.spawn(reader.drain(splitter, scribe, process.gone_signal()));
        }

        let target = talk::target(spec, &handshake, identity.as_ref(), &dir, uid, monitor_pid)?;
        let socket = target.clone();
        let talking = talk::talk(
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
            exit = process.exited() => return Err(Failure::Exited(exit)),
        };
        let (client, capability) = match talked {
            Ok(talked) => talked,
            Err(error)
                if !is_known && error.may_be_an_exit() && framed::is_possible(spec, handshake.dialect) =>
            {
                let hangs_up = tokio::select! {
                    biased;
                    exit = process.exited() => return Err(Failure::Exited(exit)),
                    hangs_up = framed::hangs_up(&socket) => hangs_up,
                };
                return if hangs_up { Ok(Came::Framed) } else { Err(unless_exited(error, process).await) };
            }
            Err(error) => return Err(unless_exited(error, process).await),
        };
        let dialect = match spec.dialect {
            Dialect::OpenTalonV0 => spec.dialect,
            _ => handshake.dialect,
        };
        let (stdout, stderr) = shared_pipes;
        let standing =
            Standing { fingerprint: None, digest, handshake, dialect, identity, report, stdout, stderr };
        Ok(Came::Ready(Box::new(Ready { client, capability, standing })))
    }

    /// The blocking part: everything up to a running program.
    async fn spawn(
        &self,
        attempt: &mut Attempt,
        spec: &PluginSpec,
        instance: u32,
        (last_good, deadline): (Option<Arc<LastGood>>, Instant),
        logs: &LogSink,
    ) -> Result<Spawned, LaunchError> {
        let (shared, spec, logs) = (self.shared.clone(), spec.clone(), logs.clone());
        let chosen = {
            let shared = shared.clone();
            let spec = spec.clone();
            tokio::task::spawn_blocking(move || Ok(shared.choose(&spec, last_good.as_deref())))
        };
        let (took, checked) = joined(chosen.await)?;
        attempt.took = took;
        let (prepared, identity) = checked?;
        attempt.program = Some(LastGood::new(prepared.clone(), spec.dialect));
        attempt.step = Step::Spawn;
        // Runs to its end even if this future is dropped; then the process is killed when the result is dropped.
        let spawning = attempt.spawning.insert(tokio::task::spawn_blocking(move || {
            shared.spawn(&spec, instance, prepared, identity, deadline, &logs)
        }));
        let spawned = spawning.await;
        attempt.spawning = None;
        joined(spawned)
    }
}

/// A connection breaks shortly before the exit that broke it is reported; the exit says more.
async fn unless_exited(error: LaunchError, process: &Process) -> Failure {
    match timeout(LAST_NEWS, process.exited()).await {
        Ok(exit) if error.may_be_an_exit() => Failure::Exited(exit),
        _ => error.into(),
    }
}

/// Re-raises a panic of blocking work, so that the driver catches it.
fn joined<T>(result: Result<Result<T, LaunchError>, tokio::task::JoinError>) -> Result<T, LaunchError> {
    match result {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(LaunchError::Stopping),
    }
}
