//! The handle on one plugin: its published state, and the life of its drivers.

mod error;
mod operate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use talon_plugin_client::Capability;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::PluginSpec;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use self::error::{ApproveFailure, OperateError};
use crate::driver::{COMMAND_QUEUE, Command, Driver, ReadyProcess};
use crate::instances::{Executor, InstanceStatus};
use crate::launcher::Launch;
use crate::lifecycle::{Desired, State};
use crate::logs::LogTail;
use crate::plugin_context::PluginContext;
use crate::snapshot::Snapshot;
use crate::source_events::EventCounters;
use crate::usage::InstanceReading;

/// A declared capability and how it compares with what was approved.
#[derive(Debug, Clone)]
pub struct ReviewedCapability {
    /// What the plugin declared.
    pub capability: Arc<Capability>,
    /// The refused actions: their declarations differ from what was approved.
    pub withheld: Arc<BTreeSet<String>>,
    /// Whether callers do not see the plugin's own texts, for the same reason.
    pub withheld_texts: bool,
    /// For each action that differs from what was approved, a digest of everything it declares; for the
    /// plugin's own texts, under [`PLUGIN_TEXTS`](talon_plugin_config::PLUGIN_TEXTS).
    pub digests: BTreeMap<String, String>,
}

/// One plugin. Cheap to clone. A handle taken before a replacement refers to the replacement.
#[derive(Clone)]
pub struct Plugin {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<PluginContext>,
    /// The plugin that replaced this one: set once.
    successor: OnceLock<Plugin>,
    drivers: Vec<mpsc::Sender<Command>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Plugin {
    /// Spawns a driver for each instance. Must be called within a tokio runtime.
    pub(crate) fn spawn(launcher: &Arc<dyn Launch>, common: Arc<PluginContext>) -> Self {
        let (drivers, tasks) = common
            .pool
            .slots
            .iter()
            .map(|slot| {
                let (sender, commands) = mpsc::channel(COMMAND_QUEUE);
                let driver = Driver::new(launcher.clone(), common.clone(), slot.clone(), commands);
                (sender, tokio::spawn(driver.run()))
            })
            .unzip();
        let (successor, tasks) = (OnceLock::new(), Mutex::new(tasks));
        Self { inner: Arc::new(Inner { context: common, successor, drivers, tasks }) }
    }

    /// The latest successor, or this plugin if it was not replaced.
    pub(crate) fn newest(&self) -> &Self {
        let mut plugin = self;
        while let Some(successor) = plugin.inner.successor.get() {
            plugin = successor;
        }
        plugin
    }

    /// The state of this plugin itself, even if it was replaced.
    pub(crate) fn context(&self) -> &Arc<PluginContext> {
        &self.inner.context
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Makes `new` the plugin: it gets all calls from now on, including those that wait.
    pub(crate) fn supersede_with(&self, new: &Self) {
        self.inner.context.supersede_with(&new.inner.context);
        // A plugin is replaced once; the next replacement applies to its successor.
        let _ = self.inner.successor.set(new.clone());
        self.inner.context.pool.supersede_with(new.inner.context.pool.clone());
    }

    /// The configured name, by which calls are routed.
    #[must_use]
    pub fn name(&self) -> &PluginName {
        &self.inner.context.spec.name
    }

    /// The registered spec. A different `Arc` means that something in it was changed.
    #[must_use]
    pub fn spec(&self) -> Arc<PluginSpec> {
        self.newest().inner.context.registered.load_full()
    }

    /// A snapshot of its current state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.newest().inner.context)
    }

    /// The digest of what was started last, lower-case hex; `None` before the first start.
    #[must_use]
    pub fn digest(&self) -> Option<String> {
        Snapshot::digest(&self.newest().inner.context)
    }

    /// Resource usage of its processes that are or were ready. Blocking: reads files of the kernel.
    #[must_use]
    pub fn readings(&self) -> Vec<InstanceReading> {
        self.inner.context.pool.slots.iter().filter_map(|slot| slot.reading()).collect()
    }

    /// What is counted of the events that it tells.
    #[must_use]
    pub fn event_counters(&self) -> Arc<EventCounters> {
        Arc::clone(&self.newest().inner.context.event_counters)
    }

    /// Its last declaration. It stays known while the plugin restarts or is stopped. `None` before its first
    /// handshake.
    #[must_use]
    pub fn capability(&self) -> Option<Arc<Capability>> {
        self.newest().inner.context.capability.load_full()
    }

    /// Its last declaration and which parts of it are refused; `None` before its first handshake. Both are
    /// read in one step, because the refusals belong to exactly this declaration.
    #[must_use]
    pub fn reviewed_capability(&self) -> Option<ReviewedCapability> {
        let standing = self.newest().inner.context.approvals.status();
        let capability = standing.capability.clone()?;
        Some(ReviewedCapability {
            capability,
            withheld: standing.withheld.clone(),
            withheld_texts: standing.withheld_texts,
            digests: standing.digests.clone(),
        })
    }

    /// The executor for its calls.
    #[must_use]
    pub fn executor(&self) -> Executor {
        Executor { pool: self.newest().inner.context.pool.clone() }
    }

    /// Its buffered log lines, followed by new ones.
    #[must_use]
    pub fn logs(&self) -> LogTail {
        self.inner.context.logs.tail()
    }

    /// Resolves once every instance is ready, failed, refused or stopped: only a call, a fault or an operator
    /// can change it from there.
    pub async fn settled(&self) {
        let settled = |view: &Arc<InstanceStatus>| match view.state {
            State::Ready | State::Failed | State::Refused | State::Stopped => true,
            State::Discovered => view.desired == Desired::Down,
            State::Starting | State::Handshaking | State::Unhealthy | State::Draining | State::Backoff => {
                false
            }
        };
        self.inner.context.pool.wait_until(|views| views.iter().all(settled)).await;
    }

    /// The instances whose driver does not answer a ping within this time. A driver that has ended does not
    /// answer either.
    pub async fn unresponsive_instances(&self, within: Duration) -> Vec<u32> {
        let asked = self.inner.drivers.iter().zip(0_u32..).map(async |(driver, instance)| {
            let (answers, answer) = oneshot::channel();
            let answered =
                async { driver.send(Command::Ping(answers)).await.is_ok() && answer.await.is_ok() };
            let answered = tokio::time::timeout(within, answered).await.unwrap_or(false);
            (!answered).then_some(instance)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Whether none of its processes is left.
    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.context.pool.statuses().iter().all(|view| view.state == State::Stopped)
    }

    /// Whether its desired state is up.
    pub(crate) fn is_desired_up(&self) -> bool {
        self.inner.context.pool.statuses().iter().any(|view| view.desired == Desired::Up)
    }

    /// Whether it takes calls.
    pub(crate) fn is_serving(&self) -> bool {
        let serves = |view: &Arc<InstanceStatus>| matches!(view.state, State::Ready | State::Unhealthy);
        self.inner.context.pool.statuses().iter().any(serves)
    }

    /// Resolves once the summary of all instances satisfies the predicate.
    #[cfg(test)]
    pub(crate) async fn wait_until(&self, will_do: impl Fn(&InstanceStatus) -> bool) {
        self.inner.context.pool.wait_until(|views| will_do(&crate::instances::summary(views))).await;
    }

    /// Its ready processes. A driver that does not answer in time is skipped.
    pub(crate) async fn ready_processes(&self) -> Vec<ReadyProcess> {
        let asked = self.inner.drivers.iter().map(|driver| async move {
            let (answer, told) = oneshot::channel();
            driver.send(Command::ReadyProcess(answer)).await.ok()?;
            told.await.ok()?
        });
        let asked = asked.map(|asked| tokio::time::timeout(END_WAIT, asked));
        join_all(asked).await.into_iter().filter_map(|told| told.ok().flatten()).collect()
    }

    /// Ends the drivers, and with them any process that is still running. Waits at most [`END_WAIT`] for
    /// each.
    pub(crate) async fn end(&self) {
        for driver in &self.inner.drivers {
            // A driver whose queue is full or that has ended is aborted below.
            let _ = driver.try_send(Command::End);
        }
        let tasks = std::mem::take(&mut *self.inner.tasks.lock());
        for task in tasks {
            let abort = task.abort_handle();
            if tokio::time::timeout(END_WAIT, task).await.is_err() {
                abort.abort();
            }
        }
        self.inner.context.last_good.forget().await;
        self.flush_logs().await;
    }

    /// Waits until its log is written to the file. If the disk hangs, the last lines are lost.
    pub(crate) async fn flush_logs(&self) {
        let _ = tokio::time::timeout(END_WAIT, self.inner.context.logs.flush()).await;
    }
}

/// How long a driver may take to end: it only drops its resources.
const END_WAIT: Duration = Duration::from_secs(5);

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(self.name()).finish()
    }
}
