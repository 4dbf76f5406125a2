//! The handle on one plugin: the operations on it and its published state.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use talon_plugin_client::Capability;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::{Sanitized, inert};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::approvals::ApproveError;
use crate::driver::{COMMAND_QUEUE, Command, Driver, ReadyProcess};
use crate::instances::{Executor, InstanceStatus};
use crate::lifecycle::event::MachineEvent;
use crate::lifecycle::{Desired, State};
use crate::logs::LogTail;
use crate::plugin_context::{PluginContext, REFRESH_TIMEOUT};
use crate::snapshot::Snapshot;
use crate::traits::Launch;
use crate::usage::InstanceReading;

/// Why an operation on a plugin did not succeed. The text ends with what to do next.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OperateError {
    /// No instance became ready.
    #[error("{plugin} is {state}: {reason}")]
    NotReady {
        /// Which plugin.
        plugin: PluginName,
        /// Its current state. In `backoff` it is retried.
        state: State,
        /// Why.
        reason: Sanitized,
    },
    /// It was removed during the operation.
    #[error("{plugin} is no longer registered; `talon plugin list` shows what is")]
    Removed {
        /// Which plugin.
        plugin: PluginName,
    },
    /// The approval failed; nothing was approved.
    #[error(transparent)]
    Approve(ApproveFailure),
    /// Its capabilities could not be read again; the stored ones stay.
    #[error("the capabilities of {plugin} could not be read: {cause}; see `talon plugin logs {plugin}`")]
    Refresh {
        /// Which plugin.
        plugin: PluginName,
        /// Why.
        cause: Sanitized,
    },
}

/// Why nothing was approved. Other crates can use only its text.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct ApproveFailure(ApproveError);

/// A declared capability and how it compares with what was approved.
#[derive(Debug, Clone)]
pub struct ReviewedCapability {
    /// What the plugin declared.
    pub capability: Arc<Capability>,
    /// The refused actions: their declarations differ from what was approved.
    pub withheld: Arc<BTreeSet<String>>,
    /// Whether callers do not see the plugin's own texts, for the same reason.
    pub withheld_texts: bool,
    /// For each action that differs from what was approved, a digest of everything it declares; for the plugin's own
    /// texts, under [`PLUGIN_TEXTS`](crate::PLUGIN_TEXTS).
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

    /// Approves what these actions declare now, or all actions if none is named. Returns those that were not approved
    /// before. With [`ReviewedCapability::digests`] from an earlier look, approves exactly what was seen then.
    ///
    /// # Errors
    /// [`OperateError::Approve`] if it declares no such action, if it has not declared anything yet, or if
    /// the approval cannot be stored. Nothing is approved then.
    pub async fn approve(
        &self,
        actions: Vec<String>,
        seen: BTreeMap<String, String>,
    ) -> Result<Vec<String>, OperateError> {
        let approved = self.newest().inner.context.approve(actions, seen).await;
        approved.map_err(|error| OperateError::Approve(ApproveFailure(error)))
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

    /// Sets the desired state to up and starts every instance that does not run; clears `Failed` and the restart
    /// counter. Returns when every instance is ready or its first attempt has failed.
    ///
    /// # Errors
    /// [`OperateError::NotReady`] if no instance became ready. One that is in backoff is tried again.
    pub async fn start(&self) -> Result<(), OperateError> {
        self.send_all(&MachineEvent::Start).await?.wait_started(None).await
    }

    /// Sets the desired state to down: no new calls; calls in flight finish within the grace period, then the
    /// processes are ended. Returns when none of them is left.
    ///
    /// # Errors
    /// [`OperateError::Removed`]
    pub async fn stop(&self) -> Result<(), OperateError> {
        let told = self.send_all(&MachineEvent::Stop { grace: None }).await?;
        let stopped = |views: &[Arc<InstanceStatus>]| {
            // A concurrent `start` ends the wait as well.
            views.iter().all(|view| view.state == State::Stopped || view.desired == Desired::Up)
        };
        told.inner.context.pool.wait_until(stopped).await;
        Ok(())
    }

    /// Stops it for good; returns when none of its processes is left. Later operations are refused.
    pub(crate) async fn retire(&self, grace: Option<Duration>) {
        let retired = self.inner.drivers.iter().map(|driver| async move {
            let (done, taken) = oneshot::channel();
            // A driver that has ended has nothing left to stop.
            if driver.send(Command::Retire { grace, done }).await.is_ok() {
                let _ = taken.await;
            }
        });
        join_all(retired).await;
        self.inner
            .context
            .pool
            .wait_until(|views| views.iter().all(|view| view.state == State::Stopped))
            .await;
    }

    /// Replaces its processes one after the other, so that with several instances one always takes calls.
    /// Stops at the first instance that does not become ready again, and wherever it is when the future is
    /// dropped. A planned restart does not count as a death. Starts stopped instances.
    ///
    /// # Errors
    /// [`OperateError::NotReady`] if an instance did not become ready; the instances after it are not restarted.
    pub async fn restart(&self) -> Result<(), OperateError> {
        for index in 0..self.newest().inner.drivers.len() {
            let plugin = self.newest();
            // A replacement that happened meanwhile has new processes and needs no restart.
            match plugin.send(index, MachineEvent::Restart).await {
                Err(_) if plugin.inner.successor.get().is_some() => return Ok(()),
                told => told?,
            }
            plugin.wait_started(Some(index)).await?;
        }
        Ok(())
    }

    /// Asks every ready instance to declare its capabilities again. `false`: the plugin does not implement
    /// that, and the stored capabilities stay.
    ///
    /// # Errors
    /// [`OperateError::NotReady`] if no instance is ready, [`OperateError::Refresh`] if one did not answer or its
    /// answer is not accepted.
    pub async fn refresh_capabilities(&self) -> Result<bool, OperateError> {
        let common = &self.newest().inner.context;
        let mut refreshed = false;
        let mut asked = false;
        for slot in &common.pool.slots {
            let Some(live) = slot.live.load_full() else { continue };
            asked = true;
            let answer =
                tokio::time::timeout(REFRESH_TIMEOUT, live.client.refresh_capabilities(REFRESH_TIMEOUT));
            let failed = |cause| OperateError::Refresh { plugin: self.name().clone(), cause };
            match answer.await {
                Ok(Ok(Some(capability))) => {
                    common.set_capability(capability);
                    refreshed = true;
                }
                Ok(Ok(None)) => {}
                Ok(Err(cause)) => return Err(failed(cause)),
                Err(_) => return Err(failed(inert!("no answer within {} s", REFRESH_TIMEOUT.as_secs()))),
            }
        }
        if asked { Ok(refreshed) } else { Err(self.newest().not_ready(None)) }
    }

    /// Resolves once every instance is ready, failed, refused or stopped: only a call, a fault or an operator can
    /// change it from there.
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

    /// The instances whose driver does not answer a ping within this time. A driver that has ended does not answer
    /// either.
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

    /// Ends the drivers, and with them any process that is still running. Waits at most [`END_WAIT`] for each.
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

    /// Sends the event to all drivers of the current plugin, and returns that plugin.
    async fn send_all(&self, event: &MachineEvent) -> Result<&Self, OperateError> {
        loop {
            let plugin = self.newest();
            let told = (0..plugin.inner.drivers.len()).map(|index| plugin.send(index, event.clone()));
            let told: Result<(), _> = join_all(told).await.into_iter().collect();
            // If the plugin was replaced meanwhile, the event has to reach its successor.
            if plugin.inner.successor.get().is_none() {
                return told.map(|()| plugin);
            }
        }
    }

    async fn send(&self, index: usize, event: MachineEvent) -> Result<(), OperateError> {
        let removed = || OperateError::Removed { plugin: self.name().clone() };
        let (done, taken) = oneshot::channel();
        self.inner.drivers[index].send(Command::Event(Box::new(event), done)).await.map_err(|_| removed())?;
        taken.await.map_err(|_| removed())
    }

    /// Waits until every instance of an enabled plugin is ready, or its first attempt has failed.
    pub(crate) async fn wait_first_attempt(&self) -> Result<(), OperateError> {
        let begun = |view: &Arc<InstanceStatus>| view.state != State::Discovered;
        self.inner.context.pool.wait_until(|views| views.iter().all(begun)).await;
        self.wait_started(None).await
    }

    /// Waits until the instance, or all instances, finished starting, successfully or not.
    async fn wait_started(&self, index: Option<usize>) -> Result<(), OperateError> {
        let pool = &self.inner.context.pool;
        let mine = |views: &[Arc<InstanceStatus>]| match index {
            Some(index) => views[index..=index].to_vec(),
            None => views.to_vec(),
        };
        let arrived = |view: &Arc<InstanceStatus>| match view.state {
            State::Ready | State::Unhealthy | State::Failed | State::Refused | State::Backoff => true,
            State::Stopped | State::Discovered => true,
            State::Starting | State::Handshaking | State::Draining => false,
        };
        pool.wait_until(|views| mine(views).iter().all(arrived)).await;
        let ready = |view: &Arc<InstanceStatus>| matches!(view.state, State::Ready | State::Unhealthy);
        if mine(&pool.statuses()).iter().any(ready) { Ok(()) } else { Err(self.not_ready(index)) }
    }

    fn not_ready(&self, index: Option<usize>) -> OperateError {
        let views = self.inner.context.pool.statuses();
        let view = match index {
            Some(index) => views[index].clone(),
            None => crate::instances::summary(&views),
        };
        let plugin = self.name().clone();
        let next = || inert!("`talon plugin start {}` starts it", plugin);
        let reason = view.reason.clone().unwrap_or_else(next);
        OperateError::NotReady { state: view.state, reason, plugin }
    }
}

/// How long a driver may take to end: it only drops its resources.
const END_WAIT: Duration = Duration::from_secs(5);

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(self.name()).finish()
    }
}
