//! A launcher without processes, for tests: it follows the test's plan and keeps a record.

mod alive;
mod behavior;
mod client;
mod fixtures;
mod process;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_plugin_client::Capability;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::PluginSpec;
use talon_proto::notices::Notice;
use talon_proto::plugin::{Action, PluginCapabilities};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::alive::AliveGuard;
pub(crate) use self::behavior::{FakeBehavior, WELL_BEHAVED};
use self::client::FakeClient;
pub(crate) use self::fixtures::{call, registry, spec};
pub(crate) use self::process::FakeProcess;
use crate::launch::{DiskChoice, ProgramChoice};
use crate::launcher::Launch;
use crate::lifecycle::event::FailureKind;
use crate::logs::LogSink;
use crate::service_spec::ServiceSpec;
use crate::traits::start::{LaunchProgress, StartFailure, StartedProcess, StartedService};

/// The outcome of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchPlan {
    Ready,
    Fails,
    Refused,
    Hangs,
    Panics,
}

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
    pub(crate) fn new(behavior: FakeBehavior) -> Arc<Self> {
        let action = Action { name: "greet".to_owned(), ..Action::default() };
        Arc::new(Self {
            plans: Mutex::default(),
            of_last_good: Mutex::default(),
            behavior: Mutex::new(behavior),
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
            self.of_last_good.lock().push(matches!(choice.disk, DiskChoice::Failed(_)));
            let alive = AliveGuard::new(&self.alive);
            let plan = self.plans.lock().pop_front().unwrap_or(LaunchPlan::Ready);
            let refusal = |kind| Err(StartFailure { cause: "no handshake".into(), kind });
            progress(LaunchProgress::Started { pid: 100 + instance, uid: 70_000 });
            match plan {
                LaunchPlan::Fails => return refusal(FailureKind::Passing),
                LaunchPlan::Refused => return refusal(FailureKind::Permanent),
                LaunchPlan::Hangs => {
                    cancel.cancelled().await;
                    return refusal(FailureKind::Passing);
                }
                LaunchPlan::Panics => panic!("as the test asked for"),
                LaunchPlan::Ready => {}
            }
            let behavior = *self.behavior.lock();
            let process = Arc::new(FakeProcess {
                instance,
                behavior,
                exit: watch::Sender::new(None),
                killed: watch::Sender::new(false),
                flood: watch::Sender::new(false),
                received: Mutex::default(),
                alive: Mutex::new(Some(alive)),
            });
            self.processes.lock().push(process.clone());
            let client = FakeClient {
                answer: format!("{instance}.{generation}"),
                behavior,
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
                dialect: behavior.dialect,
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
                let refused = plan == LaunchPlan::Refused;
                let kind = if refused { FailureKind::Permanent } else { FailureKind::Passing };
                return Err(StartFailure { cause: "no jail".into(), kind });
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
