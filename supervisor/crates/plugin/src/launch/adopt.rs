//! A start that takes over a running process from another supervisor.
//!
//! The process is accepted if its spec has the same fingerprint, if it runs the program that is on the disk
//! now, if it has the plugin's uid, and if it serves. Otherwise it is killed, and the start continues like
//! any other.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use talon_jail::{Identity, Mode};
use talon_plugin_client::connect::ClientIdentity;
use talon_plugin_client::handshake::{Address, Handshake};
use talon_plugin_client::{Capability, Client};
use talon_plugin_config::fingerprint::fingerprint;
use talon_plugin_config::spec::{Dialect, NetworkAccess, PluginSpec};
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::adoption_pool::AdoptedProcess;
use super::attempt::Attempt;
use super::blocking::flatten_join;
use super::error::{LaunchError, LaunchStep};
use super::last_good::{LastGoodProgram, ProgramChoice};
use super::process::{HandoverState, ServedSockets};
use super::program::PreparedProgram;
use super::shared::Shared;
use super::{Launcher, framed, setup, spawn};
use crate::handover::{AddressRecord, InstanceCounters, ProcessRecord};
use crate::logs::{Level, LogSink, Stream};
use crate::stdio::{LineSplitter, PipeReader, StreamLogger};
use crate::traits::start::{LaunchProgress, StartedProcess};

/// The timeout for taking over a process, if the start timeout is not shorter. The process only has to answer
/// twice; one that cannot do so in this time would only delay its callers, and a fresh start still has its
/// full timeout.
const ADOPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a handed-over process does not fit its plugin.
#[derive(Debug, thiserror::Error)]
enum TakeoverError {
    #[error("its settings have changed")]
    Settings,
    #[error("what lies on the disk is not what it runs")]
    Program,
    #[error("it runs as uid {found}, and the plugin's is {expected} now")]
    Uid { found: u32, expected: u32 },
    #[error("it has ended")]
    Ended,
    #[error("its key-value socket is not as configured")]
    State,
    #[error("its socket for completions is not as configured")]
    Models,
    #[error("its egress socket is not as configured")]
    Proxy,
    #[error("{0}")]
    Launch(#[from] LaunchError),
}

impl Launcher {
    /// Takes over the process of this instance, if it still fits the plugin. `None`: there is none, or it did
    /// not fit and was ended. On an error nothing of it is left.
    pub(super) async fn take_over(
        &self,
        spec: &PluginSpec,
        instance: u32,
        choice: ProgramChoice<'_>,
        logs: &LogSink,
        progress: &(dyn Fn(LaunchProgress) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Option<StartedProcess>, LaunchError> {
        let Some(entry) = self.adoption_pool.take(&spec.name, instance) else { return Ok(None) };
        let counted = restored_counters(&entry.handed);
        let (pid, uid) = (entry.process.pid(), entry.process.uid());
        let mut attempt = Attempt::new();
        let work = self.adopt(&mut attempt, entry, spec, logs, progress);
        let within = ADOPT_TIMEOUT.min(spec.lifecycle.start_timeout);
        let outcome = cancel.run_until_cancelled(timeout(within, work)).await;
        let why = match (outcome, attempt.process.take()) {
            (Some(Ok(Ok((client, capability, handed)))), Some(process)) => {
                self.adoption_pool.count_taken_over();
                choice.remember(attempt.program.take()).await;
                if handed.dialect == Dialect::OpenTalonV0 {
                    self.framed.remember(&spec.name, &handed.digest);
                }
                logs.note(instance, Level::Info, format!("taken over as pid {pid}, uid {uid}"));
                let ProcessRecord { digest, dialect, report, .. } = handed;
                let taken_over = Some(counted);
                return Ok(Some(StartedProcess {
                    process: Arc::new(process),
                    client: Arc::new(client),
                    capability,
                    report,
                    digest,
                    dialect,
                    taken_over,
                }));
            }
            (outcome, process) => {
                self.adoption_pool.count_refused();
                let step = attempt.step;
                let words = attempt.clean_up(process).await;
                match outcome {
                    None => return Err(LaunchError::Cancelled),
                    Some(Ok(Err(unfit))) => Raw::of(&unfit).line(),
                    Some(Ok(Ok(_)) | Err(_)) => {
                        let timed_out = LaunchError::TimedOut { after: within, step, words: words.0 };
                        Raw::of(&timed_out).line()
                    }
                }
            }
        };
        let text: Sanitized = sanitized!("pid {} is not taken over: {}; starting it fresh", pid, why);
        logs.note(instance, Level::Warn, text);
        Ok(None)
    }
}

impl Launcher {
    /// Takes over a process, step by step. `attempt` holds the process and the output that was read so far.
    async fn adopt(
        &self,
        attempt: &mut Attempt,
        entry: AdoptedProcess,
        spec: &PluginSpec,
        logs: &LogSink,
        progress: &(dyn Fn(LaunchProgress) + Send + Sync),
    ) -> Result<(Client, Arc<Capability>, ProcessRecord), TakeoverError> {
        let AdoptedProcess { handed, process, dir, stdout, stderr, proxy, inside, state, model } = entry;
        let process = &*attempt.process.insert(process);
        let instance = handed.instance;
        // Read from the start, since the process may already be blocked on a full pipe.
        let pipes = [stdout, stderr].map(|pipe| PipeReader::new(pipe).map_err(LaunchError::Watch));
        let [stdout, stderr] = pipes;
        let (stdout, stderr) = (stdout?, stderr?);
        let shared_pipes = (stdout.shared(), stderr.shared());
        let scribe = |stream| StreamLogger::new(logs.clone(), instance, stream, attempt.last_words.clone());
        let lines = || LineSplitter::new(logs.line_bytes());
        let readers = &self.shared.readers;
        readers.spawn(stdout.drain(lines(), scribe(Stream::Stdout), process.gone_signal()));
        attempt.stderr_task =
            Some(readers.spawn(stderr.drain(lines(), scribe(Stream::Stderr), process.gone_signal())));

        // A plugin that was found to speak the oldest protocol runs behind the bridge.
        let bridged = (handed.dialect == Dialect::OpenTalonV0).then(|| framed::behind_bridge(spec));
        let spec_as_run = bridged.as_ref().unwrap_or(spec);
        let looking = {
            let (shared, spec, as_run, handed) =
                (self.shared.clone(), spec.clone(), spec_as_run.clone(), handed.clone());
            tokio::task::spawn_blocking(move || shared.verify(&spec, &as_run, &handed))
        };
        let (prepared, identity) = flatten_join(looking.await.map(Ok))??;
        attempt.program = Some(LastGoodProgram::new(prepared, spec_as_run.dialect));
        process.set_limits(&spec.sandbox.limits).map_err(LaunchError::Group)?;
        let proxy =
            proxy.map(|socket| spawn::start_proxy(spec, instance, socket, identity, logs)).transpose()?;
        if let Some(proxy) = &proxy {
            spawn::serve_inside(proxy, inside)?;
        }
        let served = self.shared.settings.state.as_ref().zip(state);
        let state = served.map(|(state, socket)| state.attach(&spec.name, process.uid(), socket));
        let granted = self.shared.settings.models.as_ref().zip(model);
        let model = granted.map(|(models, socket)| models.attach(&spec.name, process.uid(), socket));
        process.serve(ServedSockets { proxy, state, model });
        progress(LaunchProgress::Started { pid: process.pid(), uid: process.uid() });
        progress(LaunchProgress::Handshaken);

        let handshake = restored_handshake(&handed);
        let known = handed.identity.as_ref().map(ClientIdentity::take_over).transpose();
        let known = known.map_err(LaunchError::Tls)?;
        let (uid, monitor_pid) = (process.uid(), process.monitor_pid());
        let frames = self.shared.settings.frames;
        let target = setup::target(spec_as_run, &handshake, known.as_ref(), &dir, uid, monitor_pid, frames)?;
        // No Init: the process already has its settings, and they are unchanged.
        let talking = async {
            attempt.step = LaunchStep::Connect;
            let read_by = (readers, &attempt.last_words);
            let client =
                setup::connect_and_drain(spec_as_run, target, &handshake, (logs, instance), process, read_by)
                    .await?;
            let capability = setup::wait_until_serving(&mut attempt.step, spec_as_run, &client).await?;
            Ok::<_, LaunchError>((client, capability))
        };
        let (client, capability) = tokio::select! {
            biased;
            talked = talking => talked?,
            _ = process.exited() => return Err(TakeoverError::Ended),
        };
        process.set_ready(HandoverState {
            fingerprint: Some(handed.fingerprint.clone()),
            digest: handed.digest.clone(),
            handshake,
            dialect: handed.dialect,
            identity: known,
            report: handed.report.clone(),
            stdout: shared_pipes.0,
            stderr: shared_pipes.1,
        });
        Ok((client, capability, handed))
    }
}

impl Shared {
    /// Checks everything that can be checked without asking the process; returns its program and identity.
    /// Blocking: it reads the program again. `as_run` is the spec with the dialect that the process turned
    /// out to speak.
    fn verify(
        &self,
        spec: &PluginSpec,
        as_run: &PluginSpec,
        handed: &ProcessRecord,
    ) -> Result<(PreparedProgram, Option<Identity>), TakeoverError> {
        same_settings(spec, handed)?;
        let (prepared, identity) = self.prepare_program(as_run)?;
        same_program(&prepared, handed)?;
        same_user(identity, handed)?;
        same_sockets(spec, self.settings.state.is_some(), self.settings.models.is_some(), handed)?;
        Ok((prepared, identity))
    }
}

fn same_settings(spec: &PluginSpec, handed: &ProcessRecord) -> Result<(), TakeoverError> {
    match fingerprint(spec) {
        Some(fingerprint) if fingerprint == handed.fingerprint => Ok(()),
        _ => Err(TakeoverError::Settings),
    }
}

/// Compares the digest and, if it runs from a copy, the copy itself. A copy is verified before it is reused,
/// so a modified one does not match here.
fn same_program(prepared: &PreparedProgram, handed: &ProcessRecord) -> Result<(), TakeoverError> {
    let view = prepared.view.as_ref().map(|view| view.to_handover());
    if prepared.digest == handed.digest && view == handed.view { Ok(()) } else { Err(TakeoverError::Program) }
}

fn same_user(identity: Option<Identity>, handed: &ProcessRecord) -> Result<(), TakeoverError> {
    let (found, expected) = (handed.program.uid, spawn::uid_of(identity));
    if found == expected { Ok(()) } else { Err(TakeoverError::Uid { found, expected }) }
}

/// Every socket named in its environment must be served, and none may be missing there.
fn same_sockets(
    spec: &PluginSpec,
    state: bool,
    models: bool,
    handed: &ProcessRecord,
) -> Result<(), TakeoverError> {
    let proxied = spec.sandbox.mode != Mode::Off && spec.sandbox.network == NetworkAccess::Proxy;
    if handed.proxy.is_some() != proxied {
        return Err(TakeoverError::Proxy);
    }
    if handed.model.is_some() != (spec.models && models) {
        return Err(TakeoverError::Models);
    }
    if handed.state.is_some() == state { Ok(()) } else { Err(TakeoverError::State) }
}

/// The parts of its handshake that are still needed.
fn restored_handshake(handed: &ProcessRecord) -> Handshake {
    Handshake {
        dialect: handed.handshake,
        app_version: None,
        address: match &handed.address {
            AddressRecord::Unix(path) => Address::Unix(path.clone()),
            AddressRecord::Tcp(address) => Address::Tcp(*address),
        },
        server_cert: handed.server_cert.clone(),
        mux: false,
        http_addr: None,
    }
}

fn restored_counters(handed: &ProcessRecord) -> InstanceCounters {
    let ready_since = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(handed.ready_since_unix_ms));
    InstanceCounters {
        starts: handed.starts,
        ready_since,
        start_to_ready: handed.start_to_ready_us.map(Duration::from_micros),
    }
}
