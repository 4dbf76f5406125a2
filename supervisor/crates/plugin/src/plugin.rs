//! The handle on one plugin: what the operator may do with it, and what is known of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use talon_sanitize::{Sanitized, inert};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::approved::ApproveError;
use crate::capability::Capability;
use crate::common::Common;
use crate::driver::{COMMAND_ROOM, Command, Driver, ReadyProcess};
use crate::instances::{Executor, View};
use crate::lifecycle::event::Event;
use crate::lifecycle::{Desired, State};
use crate::logs::LogTail;
use crate::name::PluginName;
use crate::seam::Launch;
use crate::snapshot::Snapshot;
use crate::spec::PluginSpec;
use crate::usage::InstanceReading;

/// How long a refresh of capabilities may take. They are a small message; a plugin that is busy for longer than
/// this is asked again by whoever asked.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(10);

/// Why an operation on a plugin did not succeed. The text ends with what to do next.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OperateError {
    /// It did not become ready.
    #[error("{plugin} is {state}: {reason}")]
    NotReady {
        /// Which plugin.
        plugin: PluginName,
        /// Where it is now. `backoff`: it will be tried again.
        state: State,
        /// Why.
        reason: Sanitized,
    },
    /// It was removed while the operation went on.
    #[error("{plugin} is no longer registered; `talon plugin list` shows what is")]
    Removed {
        /// Which plugin.
        plugin: PluginName,
    },
    /// Nothing was approved.
    #[error(transparent)]
    Approve(ApproveFailure),
    /// Its capabilities could not be read anew; what was known stays.
    #[error("the capabilities of {plugin} could not be read: {cause}; see `talon plugin logs {plugin}`")]
    Refresh {
        /// Which plugin.
        plugin: PluginName,
        /// Why.
        cause: Sanitized,
    },
}

/// Why nothing was approved; only its text is of use to others.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct ApproveFailure(ApproveError);

/// A declaration and how it stands to what was approved.
#[derive(Debug, Clone)]
pub struct Offered {
    /// What the plugin declared.
    pub capability: Arc<Capability>,
    /// Its actions that are refused, because they are not what was approved.
    pub withheld: Arc<BTreeSet<String>>,
    /// Whether what it says of itself is left out for callers, for the same reason.
    pub withheld_texts: bool,
    /// A digest of all that an action declares, for each that is not what was approved; of the plugin's own texts under
    /// [`PLUGIN_TEXTS`](crate::PLUGIN_TEXTS).
    pub digests: BTreeMap<String, String>,
}

/// One plugin. Cheap to clone. A handle from before it was replaced goes on to what replaced it.
#[derive(Clone)]
pub struct Plugin {
    inner: Arc<Inner>,
}

struct Inner {
    common: Arc<Common>,
    /// What it was replaced by: set once.
    successor: OnceLock<Plugin>,
    drivers: Vec<mpsc::Sender<Command>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Plugin {
    /// Spawns a driver for each instance. Must be called within a tokio runtime.
    pub(crate) fn spawn(launcher: &Arc<dyn Launch>, common: Arc<Common>) -> Self {
        let (drivers, tasks) = common
            .pool
            .slots
            .iter()
            .map(|slot| {
                let (sender, commands) = mpsc::channel(COMMAND_ROOM);
                let driver = Driver::new(launcher.clone(), common.clone(), slot.clone(), commands);
                (sender, tokio::spawn(driver.run()))
            })
            .unzip();
        let (successor, tasks) = (OnceLock::new(), Mutex::new(tasks));
        Self { inner: Arc::new(Inner { common, successor, drivers, tasks }) }
    }

    /// What the plugin is now.
    pub(crate) fn newest(&self) -> &Self {
        let mut plugin = self;
        while let Some(successor) = plugin.inner.successor.get() {
            plugin = successor;
        }
        plugin
    }

    /// What is known of this one, whatever replaced it.
    pub(crate) fn common(&self) -> &Arc<Common> {
        &self.inner.common
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// `new` becomes the plugin: it gets the calls from here on, those that wait among them.
    pub(crate) fn give_way(&self, new: &Self) {
        self.inner.common.give_way(&new.inner.common);
        // It is replaced once; its successor is what is replaced next.
        let _ = self.inner.successor.set(new.clone());
        self.inner.common.pool.give_way(new.inner.common.pool.clone());
    }

    /// The configured name, by which calls are routed.
    #[must_use]
    pub fn name(&self) -> &PluginName {
        &self.inner.common.spec.name
    }

    /// How it is registered. Another `Arc` means that something about it was changed.
    #[must_use]
    pub fn spec(&self) -> Arc<PluginSpec> {
        self.newest().inner.common.registered.load_full()
    }

    /// What is known of it now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.newest().inner.common)
    }

    /// The digest of what was started last, lower-case hex; `None` before the first start.
    #[must_use]
    pub fn digest(&self) -> Option<String> {
        Snapshot::digest(&self.newest().inner.common)
    }

    /// What its processes use, those that are ready or were. Blocking: the kernel's files are read.
    #[must_use]
    pub fn readings(&self) -> Vec<InstanceReading> {
        self.inner.common.pool.slots.iter().filter_map(|slot| slot.reading()).collect()
    }

    /// What it declared last; it stays known while the plugin restarts or is stopped. `None` before its first
    /// handshake.
    #[must_use]
    pub fn capability(&self) -> Option<Arc<Capability>> {
        self.newest().inner.common.capability.load_full()
    }

    /// What it declared last, together with what is refused of that; `None` before its first handshake. Read at once, because
    /// what is refused of a later declaration says nothing about this one.
    #[must_use]
    pub fn offered(&self) -> Option<Offered> {
        let standing = self.newest().inner.common.approvals.standing();
        let capability = standing.capability.clone()?;
        Some(Offered {
            capability,
            withheld: standing.withheld.clone(),
            withheld_texts: standing.withheld_texts,
            digests: standing.digests.clone(),
        })
    }

    /// Approves what these actions declare now, or what all of them do if none is named; gives those that were not approved
    /// before. With [`Offered::digests`] of what somebody saw, no more than that.
    ///
    /// # Errors
    /// [`OperateError::Approve`] if it declares no such action, or none at all yet, or the approval cannot be kept. Nothing is
    /// approved then.
    pub async fn approve(
        &self,
        actions: Vec<String>,
        seen: BTreeMap<String, String>,
    ) -> Result<Vec<String>, OperateError> {
        let approved = self.newest().inner.common.approve(actions, seen).await;
        approved.map_err(|error| OperateError::Approve(ApproveFailure(error)))
    }

    /// Runs calls on it.
    #[must_use]
    pub fn executor(&self) -> Executor {
        Executor { pool: self.newest().inner.common.pool.clone() }
    }

    /// Its kept log lines, and those that come.
    #[must_use]
    pub fn logs(&self) -> LogTail {
        self.inner.common.logs.tail()
    }

    /// Makes it wanted and starts what does not run; clears `Failed` and the tally. Returns when every instance
    /// is ready or its first attempt has failed.
    ///
    /// # Errors
    /// [`OperateError::NotReady`] if no instance became ready. One that is in backoff is tried again.
    pub async fn start(&self) -> Result<(), OperateError> {
        self.tell_all(&Event::Start).await?.arrived(None).await
    }

    /// Makes it unwanted: no new calls, calls in flight finish within the grace period, then the processes go.
    /// Returns when nothing of them is left.
    ///
    /// # Errors
    /// [`OperateError::Removed`]
    pub async fn stop(&self) -> Result<(), OperateError> {
        let told = self.tell_all(&Event::Stop { grace: None }).await?;
        let stopped = |views: &[Arc<View>]| {
            // Somebody else's `start` ends the wait as well.
            views.iter().all(|view| view.state == State::Stopped || view.desired == Desired::Up)
        };
        told.inner.common.pool.until(stopped).await;
        Ok(())
    }

    /// Stops it for good; returns when nothing of its processes is left. Operations afterwards are refused.
    pub(crate) async fn retire(&self, grace: Option<Duration>) {
        let retired = self.inner.drivers.iter().map(|driver| async move {
            let (done, taken) = oneshot::channel();
            // A driver that is gone has nothing left to stop.
            if driver.send(Command::Retire { grace, done }).await.is_ok() {
                let _ = taken.await;
            }
        });
        join_all(retired).await;
        self.inner.common.pool.until(|views| views.iter().all(|view| view.state == State::Stopped)).await;
    }

    /// Replaces its processes one after the other, so that with several instances somebody always takes calls;
    /// stops at the first that does not come back, and where it is when the future is dropped. A planned restart
    /// is not a death. Starts what is stopped.
    ///
    /// # Errors
    /// [`OperateError::NotReady`] if an instance did not come back; the instances after it were left alone.
    pub async fn restart(&self) -> Result<(), OperateError> {
        for index in 0..self.newest().inner.drivers.len() {
            let plugin = self.newest();
            // What replaced it meanwhile has new processes and needs no restart.
            match plugin.tell(index, Event::Restart).await {
                Err(_) if plugin.inner.successor.get().is_some() => return Ok(()),
                told => told?,
            }
            plugin.arrived(Some(index)).await?;
        }
        Ok(())
    }

    /// Asks every ready instance for its capabilities anew. `false`: it does not implement that, and what was
    /// known stays.
    ///
    /// # Errors
    /// [`OperateError::NotReady`] if no instance is ready, [`OperateError::Refresh`] if one did not answer or
    /// answered with something that is not accepted.
    pub async fn refresh_capabilities(&self) -> Result<bool, OperateError> {
        let common = &self.newest().inner.common;
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

    /// Resolves once every instance is ready, failed, refused or stopped: nothing changes any more without a
    /// call, a fault or an operator.
    pub async fn settled(&self) {
        let settled = |view: &Arc<View>| match view.state {
            State::Ready | State::Failed | State::Refused | State::Stopped => true,
            State::Discovered => view.desired == Desired::Down,
            State::Starting | State::Handshaking | State::Unhealthy | State::Draining | State::Backoff => {
                false
            }
        };
        self.inner.common.pool.until(|views| views.iter().all(settled)).await;
    }

    /// The instances whose driver does not answer within this time, between two of its events. One that was ended does not
    /// answer either.
    pub async fn silent(&self, within: Duration) -> Vec<u32> {
        let asked = self.inner.drivers.iter().zip(0_u32..).map(async |(driver, instance)| {
            let (answers, answer) = oneshot::channel();
            let answered =
                async { driver.send(Command::Pulse(answers)).await.is_ok() && answer.await.is_ok() };
            let answered = tokio::time::timeout(within, answered).await.unwrap_or(false);
            (!answered).then_some(instance)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Whether nothing of its processes is left.
    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.common.pool.views().iter().all(|view| view.state == State::Stopped)
    }

    /// Whether somebody wants it to run.
    pub(crate) fn is_wanted(&self) -> bool {
        self.inner.common.pool.views().iter().any(|view| view.desired == Desired::Up)
    }

    /// Whether it takes calls now.
    pub(crate) fn is_serving(&self) -> bool {
        let serves = |view: &Arc<View>| matches!(view.state, State::Ready | State::Unhealthy);
        self.inner.common.pool.views().iter().any(serves)
    }

    /// Resolves once the plugin as a whole is in a state that will do.
    #[cfg(test)]
    pub(crate) async fn reaches(&self, will_do: impl Fn(&View) -> bool) {
        self.inner.common.pool.until(|views| will_do(&crate::instances::summary(views))).await;
    }

    /// Its processes that are ready. A driver that does not answer in time is left out.
    pub(crate) async fn standing(&self) -> Vec<ReadyProcess> {
        let asked = self.inner.drivers.iter().map(|driver| async move {
            let (answer, told) = oneshot::channel();
            driver.send(Command::Standing(answer)).await.ok()?;
            told.await.ok()?
        });
        let asked = asked.map(|asked| tokio::time::timeout(END_WAIT, asked));
        join_all(asked).await.into_iter().filter_map(|told| told.ok().flatten()).collect()
    }

    /// Ends the drivers, and with them whatever process is still there. Waits for them no longer than that
    /// takes.
    pub(crate) async fn end(&self) {
        for driver in &self.inner.drivers {
            // A driver whose queue is full, or that is gone already, is ended below.
            let _ = driver.try_send(Command::End);
        }
        let tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            let abort = task.abort_handle();
            if tokio::time::timeout(END_WAIT, task).await.is_err() {
                abort.abort();
            }
        }
        self.inner.common.kept.forget().await;
        self.flush_logs().await;
    }

    /// Waits until its log is in its file. On a disk that hangs the last lines are given up.
    pub(crate) async fn flush_logs(&self) {
        let _ = tokio::time::timeout(END_WAIT, self.inner.common.logs.flush()).await;
    }

    /// Tells the plugin as it is now, and gives what was told.
    async fn tell_all(&self, event: &Event) -> Result<&Self, OperateError> {
        loop {
            let plugin = self.newest();
            let told = (0..plugin.inner.drivers.len()).map(|index| plugin.tell(index, event.clone()));
            let told: Result<(), _> = join_all(told).await.into_iter().collect();
            // Whatever one that was just replaced did with it, it is meant for its successor.
            if plugin.inner.successor.get().is_none() {
                return told.map(|()| plugin);
            }
        }
    }

    async fn tell(&self, index: usize, event: Event) -> Result<(), OperateError> {
        let removed = || OperateError::Removed { plugin: self.name().clone() };
        let (done, taken) = oneshot::channel();
        self.inner.drivers[index].send(Command::Tell(Box::new(event), done)).await.map_err(|_| removed())?;
        taken.await.map_err(|_| removed())
    }

    /// Waits until every instance of a plugin that starts by itself is ready, or its first attempt has failed.
    pub(crate) async fn first_attempt(&self) -> Result<(), OperateError> {
        let begun = |view: &Arc<View>| view.state != State::Discovered;
        self.inner.common.pool.until(|views| views.iter().all(begun)).await;
        self.arrived(None).await
    }

    /// Waits until the instance, or all of them, got where a start leads.
    async fn arrived(&self, index: Option<usize>) -> Result<(), OperateError> {
        let pool = &self.inner.common.pool;
        let mine = |views: &[Arc<View>]| match index {
            Some(index) => views[index..=index].to_vec(),
            None => views.to_vec(),
        };
        let arrived = |view: &Arc<View>| match view.state {
            State::Ready | State::Unhealthy | State::Failed | State::Refused | State::Backoff => true,
            State::Stopped | State::Discovered => true,
            State::Starting | State::Handshaking | State::Draining => false,
        };
        pool.until(|views| mine(views).iter().all(arrived)).await;
        let ready = |view: &Arc<View>| matches!(view.state, State::Ready | State::Unhealthy);
        if mine(&pool.views()).iter().any(ready) { Ok(()) } else { Err(self.not_ready(index)) }
    }

    fn not_ready(&self, index: Option<usize>) -> OperateError {
        let views = self.inner.common.pool.views();
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

/// How long a driver may take to end: it only drops what it holds.
const END_WAIT: Duration = Duration::from_secs(5);

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(self.name()).finish()
    }
}
