//! Status and metrics of the agent.

use talon_proto::agent::{
    GetMetricsRequest, GetMetricsResponse, GetStatusRequest, GetStatusResponse, MemoryVectors,
    RetentionStatus, ScheduleStatus,
};
use talon_store::VectorEngine;
use tonic::Status;

use super::client::Client;
use super::models::{providers, up};
use super::service::Service;
use super::sessions::unix_ms;
use crate::jobs::JobsStatus;
use crate::recall::IndexReport;
use crate::shadow::model_problem;

impl Service {
    pub(super) async fn get_status(
        &self,
        client: &Client,
        _request: GetStatusRequest,
    ) -> Result<GetStatusResponse, Status> {
        let setup = self.agent.setup();
        let (mut problems, pending, vectors, proposed) = tokio::join!(
            self.agent.problems(),
            self.agent.approvals_pending(),
            self.agent.memory_vectors(),
            self.agent.proposals_waiting()
        );
        if !client.is_operator() {
            // It names files of all people's sessions.
            let retention = self.agent.retention.problem();
            problems.retain(|problem| retention.as_ref() != Some(problem));
        }
        if pending.is_none() {
            problems.push(
                "how many calls wait for a person is not known, since approvals are being written: see whether the agent's database answers"
                    .to_owned(),
            );
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let workspace = setup.settings.agent.workspace.as_ref();
        Ok(GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_unix_ms: unix_ms(self.agent.started),
            engine: self.agent.store.engine().to_owned(),
            place: self.agent.store.location(),
            providers: providers(&setup),
            problems,
            turns_running: count(self.agent.turns.count().0),
            approvals_pending: count(pending.unwrap_or_default()),
            workspace: workspace.map(|path| path.display().to_string()).unwrap_or_default(),
            memory_vectors: vectors.map(memory_vectors),
            schedule: schedule_status(self.agent.jobs.status(), count(proposed.unwrap_or_default())),
            notifications: self.notification_status().await,
            shadow: self.agent.shadow.status(model_problem(&setup.settings).unwrap_or_default()),
            retention: self.retention_status(client),
        })
    }

    /// `None` without `agent.sessions.delete_after`. Where all people's sessions are written, and how many, operators alone are told.
    fn retention_status(&self, client: &Client) -> Option<RetentionStatus> {
        let sessions = self.agent.setup().settings.agent.sessions;
        let delete_after_seconds = sessions.delete_after?.get().as_secs();
        Some(if client.is_operator() {
            self.agent.retention.status(delete_after_seconds, sessions.export)
        } else {
            RetentionStatus { delete_after_seconds, ..RetentionStatus::default() }
        })
    }

    pub(super) async fn get_metrics(
        &self,
        client: &Client,
        _request: GetMetricsRequest,
    ) -> Result<GetMetricsResponse, Status> {
        client.require_operator("to see what was counted")?;
        let (turns, followers) = self.agent.turns.count();
        let approvals = self.agent.approvals_pending().await;
        let setup = self.agent.setup();
        let providers: Vec<(&str, f64)> =
            setup.providers().map(|(name, _, state)| (name, up(&state))).collect();
        self.agent.metrics.set_gauges(turns, approvals, followers, providers);
        let notifications = self.agent.notification_counts().await;
        self.agent.metrics.set_notifications(notifications, self.agent.notifier.dropped());
        let bus = &self.agent.bus;
        self.agent.metrics.set_bus(bus.subscribers(), bus.missed());
        let shadow = self.agent.shadow.status(String::new());
        self.agent.metrics.set_shadow(shadow.as_ref(), self.agent.shadow.dropped());
        Ok(GetMetricsResponse { families: self.agent.metrics.families() })
    }
}

/// `None` without jobs and without proposed ones.
fn schedule_status(status: Option<JobsStatus>, proposed: u32) -> Option<ScheduleStatus> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let Some(status) = status else {
        return (proposed > 0).then(|| ScheduleStatus { proposed, ..ScheduleStatus::default() });
    };
    Some(ScheduleStatus {
        jobs: count(status.jobs),
        paused: count(status.paused),
        running: count(status.running),
        waiting: count(status.waiting),
        next_unix_ms: status.next.map(|next| next.as_millisecond().unsigned_abs()),
        proposed,
    })
}

fn memory_vectors(report: IndexReport) -> MemoryVectors {
    let IndexReport { model, counts, refused, engine, failure } = report;
    let engine = match engine {
        VectorEngine::Sqlite => "sqlite",
        VectorEngine::Pgvector => "pgvector",
        VectorEngine::Bytea => "bytea",
    };
    MemoryVectors {
        model,
        memories: counts.memories,
        vectors: counts.vectors,
        local_only: counts.excepted,
        refused,
        engine: engine.to_owned(),
        failure: failure.unwrap_or_default(),
    }
}
