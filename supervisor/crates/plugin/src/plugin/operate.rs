//! What operators do with a plugin: start, stop, restart, approve, read its capabilities again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use talon_sanitize::sanitized;
use tokio::sync::oneshot;

use super::Plugin;
use super::error::{ApproveFailure, OperateError};
use crate::driver::Command;
use crate::instances::{InstanceStatus, summary};
use crate::lifecycle::event::MachineEvent;
use crate::lifecycle::{Desired, State};
use crate::plugin_context::REFRESH_TIMEOUT;

impl Plugin {
    /// Approves what these actions declare now, or all actions if none is named. Returns those that were not
    /// approved before. With [`ReviewedCapability::digests`](crate::ReviewedCapability::digests) from an earlier look, approves exactly what was
    /// seen then.
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

    /// Sets the desired state to up and starts every instance that does not run; clears `Failed` and the
    /// restart counter. Returns when every instance is ready or its first attempt has failed.
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
    /// [`OperateError::NotReady`] if an instance did not become ready; the instances after it are not
    /// restarted.
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
    /// [`OperateError::NotReady`] if no instance is ready, [`OperateError::Refresh`] if one did not answer or
    /// its answer is not accepted.
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
                Err(_) => return Err(failed(sanitized!("no answer within {} s", REFRESH_TIMEOUT.as_secs()))),
            }
        }
        if asked { Ok(refreshed) } else { Err(self.newest().not_ready(None)) }
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
            None => summary(&views),
        };
        let plugin = self.name().clone();
        let next = || sanitized!("`talon plugin start {}` starts it", plugin);
        let reason = view.reason.clone().unwrap_or_else(next);
        OperateError::NotReady { state: view.state, reason, plugin }
    }
}
