//! Periodic tasks.

use std::sync::Arc;
use std::time::Duration;

use talon_proto::agent::{FromAgent, from_agent};
use talon_store::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::connector::SupervisorControl;
use crate::agent::Agent;
use crate::journal::SessionFact;
use crate::media_store::EXPIRY_INTERVAL;
use crate::notify::room_changed;
use crate::operations::RateLimit;

/// The shortest time between two checks for due probes, whatever the chain says.
const MIN_PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// How often idle sessions are searched: a session becomes idle `agent.sessions.idle_after` after its last message,
/// give or take a minute.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The most sessions marked idle per pass; the rest follow a minute later.
const MAX_IDLE_PER_PASS: u32 = 1000;

/// How often old sessions are searched: retention is in hours and days.
const RETENTION_CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Deletes sessions that are older than the operator wants, for as long as it is polled.
pub(super) async fn delete_old_sessions(agent: Arc<Agent>) {
    let mut every = interval(RETENTION_CHECK_INTERVAL);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        agent.delete_old_sessions(Timestamp::now()).await;
    }
}

/// Probes unavailable providers, for as long as it is polled.
pub(super) async fn run_probes(agent: Arc<Agent>) {
    loop {
        let chain = Arc::clone(&agent.setup().environment.chain);
        let due = async {
            match chain.next_probe() {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = agent.probing.notified() => {}
        }
        for probe in chain.due_probes(Instant::now()) {
            let probing = Arc::clone(&agent.probing);
            tokio::spawn(async move {
                probe.run().await;
                probing.notify();
            });
        }
        sleep(MIN_PROBE_INTERVAL).await;
    }
}

/// Makes the vectors of memories, if there is a model for it, for as long as it is polled.
pub(super) async fn make_memory_vectors(agent: Arc<Agent>) {
    loop {
        let index = agent.setup().index.clone();
        // To its end: what is requested of a provider is paid for.
        let wait = match index {
            Some(index) => Some(index.make_some().await),
            None => None,
        };
        let next = async {
            match wait {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = next => {}
            () = agent.memory_changed.notified() => {}
        }
    }
}

/// Reports to the supervisor when the database stops taking writes for lack of room, and when it takes them
/// again, for as long as it is polled.
pub(super) async fn report_room(agent: Arc<Agent>, control: Arc<SupervisorControl>) {
    loop {
        agent.room_changed().await;
        agent.notify(room_changed(agent.room_problem().as_deref()));
        let ready = from_agent::Kind::Ready(agent.ready().await);
        if control.send(&FromAgent { kind: Some(ready) }, None).await.is_err() {
            // The supervisor is gone, which the process notices elsewhere.
            return;
        }
    }
}

/// Sends spans to the supervisor, for as long as it is polled.
pub(super) async fn send_spans(agent: Arc<Agent>, control: Arc<SupervisorControl>) {
    loop {
        let spans = from_agent::Kind::Spans(agent.tracer.next().await);
        if control.send(&FromAgent { kind: Some(spans) }, None).await.is_err() {
            // The supervisor is gone, which the process notices elsewhere.
            return;
        }
    }
}

/// Reports what was changed to the supervisor, which records it, for as long as it is polled.
pub(super) async fn report_operations(agent: Arc<Agent>, control: Arc<SupervisorControl>) {
    // Ended, it drops the queue, so that nobody waits for a supervisor that is gone.
    let Some(mut queue) = agent.operations.queue() else { return };
    let mut rate_limit = RateLimit::new(Instant::now());
    while let Some(mut queued) = queue.recv().await {
        if let Some(operation) = queued.take() {
            let now = Instant::now();
            let at = rate_limit.next(now);
            if at > now {
                sleep_until(at).await;
            }
            let operation = from_agent::Kind::Operation(operation);
            if control.send(&FromAgent { kind: Some(operation) }, None).await.is_err() {
                // The supervisor is gone, which the process notices elsewhere.
                return;
            }
        }
        queued.set_written();
    }
}

/// Deletes images and files that are older than the operator wants, for as long as it is polled.
pub(super) async fn expire_media(agent: Arc<Agent>) {
    let mut every = interval(EXPIRY_INTERVAL);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        match agent.media.expire(Timestamp::now()).await {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(
                deleted,
                "images and files are deleted, since they are older than agent.media.keep_days"
            ),
            Err(error) => {
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(error, "old images and files cannot be deleted");
            }
        }
    }
}

/// Marks sessions idle that have no recent messages, for as long as it is polled.
pub(super) async fn mark_idle_sessions(agent: Arc<Agent>) {
    let mut every = interval(IDLE_CHECK_INTERVAL);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let idle_after = agent.setup().settings.agent.sessions.idle_after;
        let since = Timestamp::now().before(idle_after.get());
        let note = Some(SessionFact::Idle.into_message());
        match agent.sessions.idle(since, MAX_IDLE_PER_PASS, note).await {
            Ok(idle) if !idle.is_empty() => tracing::debug!(sessions = idle.len(), "sessions are idle"),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(
                    error = talon_error_chain::error_chain(&error),
                    "idle sessions cannot be noted"
                );
            }
        }
    }
}
