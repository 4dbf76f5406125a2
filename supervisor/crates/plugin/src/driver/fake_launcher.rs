//! A launcher without processes, for tests: it follows the test's plan and keeps a record.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use talon_plugin_client::{Capability, ExecuteError, HealthStatus, PendingCall};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{Cookie, Dialect, LifecycleSettings, PluginSpec, SandboxSettings};
use talon_proto::notices::Notice;
use talon_proto::plugin::{Action, PluginCapabilities, ToolCallRequest};
use talon_sanitize::{Raw, Sanitized};
use talon_wire::frames::FrameFloodError;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::execute::ExecuteRequest;
use crate::launch::ProgramChoice;
use crate::logs::LogSink;
use crate::registry::Registry;
use crate::service::ServiceSpec;
use crate::settings::{LogLimits, Settings};
use crate::traits::LaunchProgress;
use crate::traits::{Launch, PluginClient, ProcessHandle, StartFailure, StartedProcess, StartedService};

/// The outcome of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchPlan {
    Ready,
    Fails,
    Refused,
    Hangs,
    Panics,
}

/// How a process and its client behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FakeBehavior {
    /// Ends when it is asked to shut down.
    pub(crate) accepts_shutdown: bool,
    /// Ends on SIGINT and SIGTERM.
    pub(crate) heeds_signals: bool,
    /// Answers health checks.
    pub(crate) healthy: bool,
    /// Needs a permit of [`Script::gate`] for each answer.
    pub(crate) gated: bool,
    /// How long after its deadline it ends a call; `None`: never.
    pub(crate) ends_overdue_after: Option<Duration>,
    pub(crate) dialect: Dialect,
}

pub(crate) const WELL_BEHAVED: FakeBehavior = FakeBehavior {
    accepts_shutdown: true,
    heeds_signals: true,
    healthy: true,
    gated: false,
    ends_overdue_after: Some(Duration::ZERO),
    dialect: Dialect::GoPlugin,
};

pub(crate) struct FakeLauncher {
    /// The outcomes of the next launches; later ones are `Ready`.
    pub(crate) plans: Mutex<VecDeque<LaunchPlan>>,
    pub(crate) behavior: Mutex<FakeBehavior>,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) processes: Mutex<Vec<Arc<FakeProcess>>>,
    /// For each launch, whether the last good program was requested.
    pub(crate) of_last_good: Mutex<Vec<bool>>,
    /// Launches in progress and processes not yet gone.
    alive: Arc<AtomicUsize>,
    /// Streams of calls that are still open.
    streams: Arc<AtomicUsize>,
    pub(crate) declared: Arc<Mutex<PluginCapabilities>>,
    /// The notices of the next process; without them it does not serve notices.
    pub(crate) notices: Mutex<Option<mpsc::UnboundedReceiver<Notice>>>,
}

impl FakeLauncher {
    pub(crate) fn new(manners: FakeBehavior) -> Arc<Self> {
        let action = Action { name: "greet".to_owned(), ..Action::default() };
        Arc::new(Self {
            plans: Mutex::default(),
            of_last_good: Mutex::default(),
            behavior: Mutex::new(manners),
            gate: Arc::new(Semaphore::new(0)),
            processes: Mutex::default(),
            alive: Arc::default(),
            streams: Arc::default(),
            notices: Mutex::default(),
            declared: Arc::new(Mutex::new(PluginCapabilities {
                name: "hello".to_owned(),
                actions: vec![action],
                ..PluginCapabilities::default()
            })),
        })
    }

    pub(crate) fn plan(&self, plans: impl IntoIterator<Item = LaunchPlan>) {
        self.plans.lock().extend(plans);
    }

    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::SeqCst)
    }

    pub(crate) fn latest(&self) -> Arc<FakeProcess> {
        self.processes.lock().last().expect("one was started").clone()
    }

    pub(crate) fn launched(&self) -> usize {
        self.processes.lock().len()
    }
}

/// Counts one item until it is dropped.
struct AliveGuard(Arc<AtomicUsize>);

impl AliveGuard {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Launch for FakeLauncher {
    fn launch<'a>(
        &'a self,
        _spec: &'a PluginSpec,
        (instance, generation): (u32, u64),
        choice: ProgramChoice<'a>,
        _logs: &'a LogSink,
        progress: &'a (dyn Fn(LaunchProgress) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<StartedProcess, StartFailure>> {
        async move {
            self.of_last_good.lock().push(choice.disk_failure.is_some());
            let alive = AliveGuard::new(&self.alive);
            let plan = self.plans.lock().pop_front().unwrap_or(LaunchPlan::Ready);
            let refusal = |permanent| Err(StartFailure { cause: "no handshake".into(), permanent });
            progress(LaunchProgress::Started { pid: 100 + instance, uid: 70_000 });
            match plan {
                LaunchPlan::Fails => return refusal(false),
                LaunchPlan::Refused => return refusal(true),
                LaunchPlan::Hangs => {
                    cancel.cancelled().await;
                    return refusal(false);
                }
                LaunchPlan::Panics => panic!("as the test asked for"),
                LaunchPlan::Ready => {}
            }
            let manners = *self.behavior.lock();
            let process = Arc::new(FakeProcess {
                instance,
                behavior: manners,
                exit: watch::Sender::new(None),
                killed: watch::Sender::new(false),
                flood: watch::Sender::new(false),
                received: Mutex::default(),
                alive: Mutex::new(Some(alive)),
            });
            self.processes.lock().push(process.clone());
            let client = FakeClient {
                answer: format!("{instance}.{generation}"),
                behavior: manners,
                process: process.clone(),
                gate: self.gate.clone(),
                streams: self.streams.clone(),
                declared: self.declared.clone(),
                notices: Mutex::new(self.notices.lock().take()),
            };
            let name = PluginName::new("hello").unwrap();
            let capability = Capability::check(self.declared.lock().clone(), &name).unwrap();
            Ok(StartedProcess {
                process: process.clone(),
                client: Arc::new(client),
                capability: Arc::new(capability),
                report: Vec::new(),
                digest: "00".to_owned(),
                dialect: manners.dialect,
                taken_over: None,
            })
        }
        .boxed()
    }

    fn service<'a>(
        &'a self,
        _spec: &'a ServiceSpec,
        _logs: &'a LogSink,
    ) -> BoxFuture<'a, Result<StartedService, StartFailure>> {
        async move {
            let alive = AliveGuard::new(&self.alive);
            let plan = self.plans.lock().pop_front().unwrap_or(LaunchPlan::Ready);
            if plan != LaunchPlan::Ready {
                return Err(StartFailure { cause: "no jail".into(), permanent: plan == LaunchPlan::Refused });
            }
            let process = Arc::new(FakeProcess {
                instance: 0,
                behavior: *self.behavior.lock(),
                exit: watch::Sender::new(None),
                killed: watch::Sender::new(false),
                flood: watch::Sender::new(false),
                received: Mutex::default(),
                alive: Mutex::new(Some(alive)),
            });
            self.processes.lock().push(process.clone());
            let (control, _) = talon_control::pair().unwrap();
            let words = async { Some("farewell".into()) }.boxed();
            Ok(StartedService { process, control, report: Vec::new(), last_output: words })
        }
        .boxed()
    }

    fn remove_all(&self) {}
}

pub(crate) struct FakeProcess {
    pub(crate) instance: u32,
    behavior: FakeBehavior,
    exit: watch::Sender<Option<String>>,
    killed: watch::Sender<bool>,
    /// Set once it is to exceed its budget of frames.
    pub(crate) flood: watch::Sender<bool>,
    /// The requests and signals that it received, in order.
    pub(crate) received: Mutex<Vec<&'static str>>,
    alive: Mutex<Option<AliveGuard>>,
}

impl FakeProcess {
    /// Ends the process without being asked.
    pub(crate) fn exit(&self, how: &str) {
        self.exit.send_if_modified(|exit| {
            let first = exit.is_none();
            exit.get_or_insert_with(|| how.to_owned());
            first
        });
    }

    fn record(&self, what: &'static str) {
        self.received.lock().push(what);
    }
}

impl ProcessHandle for FakeProcess {
    fn pid(&self) -> u32 {
        100 + self.instance
    }
    fn uid(&self) -> u32 {
        70_000
    }
    fn exited(&self) -> BoxFuture<'_, Sanitized> {
        async move {
            let mut exit = self.exit.subscribe();
            Raw::from(exit.wait_for(Option::is_some).await.unwrap().clone().unwrap()).line()
        }
        .boxed()
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        async move {
            self.exited().await;
            self.killed.subscribe().wait_for(|killed| *killed).await.unwrap();
            *self.alive.lock() = None;
        }
        .boxed()
    }
    fn interrupt(&self) {
        self.record("SIGINT");
        if self.behavior.heeds_signals {
            self.exit("killed by SIGINT");
        }
    }
    fn terminate(&self) {
        self.record("SIGTERM");
        if self.behavior.heeds_signals {
            self.exit("killed by SIGTERM");
        }
    }
    fn kill_all(&self) {
        self.record("SIGKILL");
        self.exit("killed by SIGKILL");
        self.killed.send_replace(true);
    }
}

struct FakeClient {
    answer: String,
    behavior: FakeBehavior,
    process: Arc<FakeProcess>,
    gate: Arc<Semaphore>,
    streams: Arc<AtomicUsize>,
    declared: Arc<Mutex<PluginCapabilities>>,
    notices: Mutex<Option<mpsc::UnboundedReceiver<Notice>>>,
}

impl PluginClient for FakeClient {
    fn execute(
        &self,
        message: &ToolCallRequest,
        _metadata: MetadataMap,
        deadline: Option<Instant>,
        _max_message_bytes: usize,
    ) -> PendingCall {
        let stream = Arc::new(AliveGuard::new(&self.streams));
        let (breaks, manners, held) = (message.action == "break", self.behavior, stream.clone());
        let (gate, process, answer) = (self.gate.clone(), self.process.clone(), self.answer.clone());
        PendingCall {
            answer: Box::pin(async move {
                let _held = held;
                if breaks {
                    return Err(ExecuteError::Transport(Arc::new(std::io::Error::other("broken pipe"))));
                }
                if manners.gated {
                    let admitted = gate.acquire();
                    let admitted = match deadline {
                        None => Ok(admitted.await),
                        Some(deadline) => tokio::time::timeout_at(deadline, admitted).await,
                    };
                    let waited = Duration::ZERO;
                    admitted.map_err(|_| ExecuteError::TimedOut { waited })?.unwrap().forget();
                }
                Ok(Bytes::from(answer))
            }),
            stream_end: Box::pin(async move {
                let _held = stream;
                match manners.ends_overdue_after {
                    Some(time) => tokio::time::sleep(time).await,
                    None => drop(process.exited().await),
                }
            }),
        }
    }
    fn health(&self, timeout: Duration) -> BoxFuture<'_, HealthStatus> {
        async move {
            if self.behavior.healthy {
                return HealthStatus::Serving;
            }
            tokio::time::sleep(timeout).await;
            HealthStatus::Failed("no answer".into())
        }
        .boxed()
    }
    fn refresh_capabilities(
        &self,
        _timeout: Duration,
    ) -> BoxFuture<'_, Result<Option<Arc<Capability>>, Sanitized>> {
        let name = PluginName::new("hello").unwrap();
        let mut declared = self.declared.lock().clone();
        declared.actions.push(Action { name: "refreshed".to_owned(), ..Action::default() });
        let capability = Capability::check(declared, &name).unwrap();
        async move { Ok(Some(Arc::new(capability))) }.boxed()
    }
    fn notices(&self) -> BoxFuture<'_, Option<BoxStream<'static, Notice>>> {
        let notices = self.notices.lock().take();
        let stream = notices.map(|notices| {
            futures_util::stream::unfold(notices, |mut notices| async move {
                Some((notices.recv().await?, notices))
            })
            .boxed()
        });
        std::future::ready(stream).boxed()
    }
    fn flood(&self) -> BoxFuture<'_, FrameFloodError> {
        let mut flood = self.process.flood.subscribe();
        async move {
            if flood.wait_for(|flooded| *flooded).await.is_err() {
                std::future::pending::<()>().await;
            }
            FrameFloodError::Control
        }
        .boxed()
    }
    fn shutdown(&self, _timeout: Duration) -> BoxFuture<'_, bool> {
        self.process.record("Shutdown");
        if self.behavior.accepts_shutdown {
            self.process.exit("exit code 0");
        }
        let polite = self.behavior.accepts_shutdown;
        async move { polite }.boxed()
    }
}

/// A spec whose program is never used.
pub(crate) fn spec(name: &str) -> PluginSpec {
    PluginSpec {
        name: PluginName::new(name).unwrap(),
        source: format!("test {name}"),
        program: PathBuf::from("/nowhere"),
        directory: None,
        args: Vec::new(),
        env: Default::default(),
        dialect: Dialect::Auto,
        service: talon_plugin_config::spec::DEFAULT_SERVICE.to_owned(),
        tls: talon_plugin_config::spec::Tls::Off,
        url: None,
        bridges: talon_plugin_config::spec::Bridges::default(),
        changed_tools: talon_plugin_config::spec::ChangedTools::Report,
        watch: false,
        config: serde_json::Map::new(),
        sha256: None,
        cookie: Cookie::default(),
        app_versions: vec![1],
        allow_tcp: false,
        instances: 1,
        lifecycle: LifecycleSettings::default(),
        sandbox: SandboxSettings::default(),
        max_message_bytes: 8 << 20,
        connections: 1,
        enabled: true,
        calls: Default::default(),
    }
}

/// A registry with this launcher.
pub(crate) fn registry(script: &Arc<FakeLauncher>) -> Registry {
    let settings = Settings {
        runtime_dir: PathBuf::from("/nowhere"),
        log_dir: None,
        data_dir: PathBuf::from("/nowhere"),
        uid_range: None,
        start_concurrency: 1,
        env_allow_list: Vec::new(),
        log_limits: LogLimits::default(),
        state: None,
    };
    Registry::with_launcher(Arc::new(settings), script.clone(), crate::Events::new())
}

pub(crate) fn call(action: &str, timeout: Option<Duration>) -> ExecuteRequest {
    let message = ToolCallRequest { action: action.to_owned(), ..ToolCallRequest::default() };
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    ExecuteRequest { message, deadline, configured_timeout: timeout, ..Default::default() }
}
