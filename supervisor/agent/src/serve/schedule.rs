//! Jobs and their occurrences.

use std::sync::Arc;
use std::time::Duration;

use talon_proto::agent::{
    self, ListJobsRequest, ListJobsResponse, ListOccurrencesRequest, ListOccurrencesResponse,
    PauseJobRequest, RunJobRequest,
};
use talon_sanitize::nearest;
use talon_schedule::{Job, Target};
use talon_store::{NewOccurrence, Occurrence, OccurrenceKind, PageRequest, Plan, ScheduledJob, Timestamp};
use tokio::time::timeout;
use tonic::Status;

use super::client::Client;
use super::proposals::open_proposals;
use super::service::{Service, page, token};
use super::sessions::unix_ms;
use crate::error_status::store_error_status;
use crate::schedule::{from_store, now, to_store};

/// Occurrences of a page, unless the client asks for fewer.
const MAX_OCCURRENCES: u32 = 200;
/// How often a manual run is tried to be stored while the scheduler moves the job on.
const MAX_TRIES: u32 = 5;
/// How long a request waits until the store knows the configured jobs.
const STORED_WAIT: Duration = Duration::from_secs(5);

impl Service {
    pub(super) async fn list_jobs(
        &self,
        client: &Client,
        _request: ListJobsRequest,
    ) -> Result<ListJobsResponse, Status> {
        client.require_operator("to see the schedule")?;
        let proposals = self.agent.proposals.list().await.map_err(|error| store_error_status(&error))?;
        let known = self.known_jobs().await?;
        let mut jobs = Vec::new();
        for (id, job) in self.agent.jobs.get().iter() {
            let stored = known.iter().find(|stored| stored.job == *id);
            let view = self.job_view(job, stored).await?;
            let accepted = proposals.accepted.iter().find(|(text, _)| job.accepted && text.job == *id);
            jobs.push(match accepted {
                Some((text, problem)) => agent::Job {
                    accepted_hash: text.digest.clone(),
                    problem: problem.clone().unwrap_or_default(),
                    ..view
                },
                None => view,
            });
        }
        Ok(ListJobsResponse { jobs, proposals: open_proposals(&proposals) })
    }

    pub(super) async fn list_occurrences(
        &self,
        client: &Client,
        request: ListOccurrencesRequest,
    ) -> Result<ListOccurrencesResponse, Status> {
        client.require_operator("to see what jobs did")?;
        let ListOccurrencesRequest { job, page_size, page_token } = request;
        let size = if page_size == 0 { MAX_OCCURRENCES } else { page_size.min(MAX_OCCURRENCES) };
        // A job that is not configured any more has a history all the same.
        let job = (!job.is_empty()).then_some(job.as_str());
        let found = async { self.agent.store.schedule().history(job, &page(&page_token, size)?).await };
        let found = found.await.map_err(|error| store_error_status(&error))?;
        if let Some(job) = job.filter(|_| found.items.is_empty() && page_token.is_empty()) {
            self.configured_job(job)?;
        }
        let occurrences = found.items.iter().map(occurrence_view).collect();
        Ok(ListOccurrencesResponse { occurrences, next_page_token: token(found.next) })
    }

    pub(super) async fn run_job(
        &self,
        client: &Client,
        request: RunJobRequest,
    ) -> Result<agent::Occurrence, Status> {
        client.require_operator("to run a job")?;
        let job = self.configured_job(&request.job)?;
        let schedule = self.agent.store.schedule();
        self.wait_stored().await?;
        for _ in 0..MAX_TRIES {
            let Some(known) = self.known_jobs().await?.into_iter().find(|known| known.job == request.job)
            else {
                break;
            };
            let at = to_store(now());
            let new =
                NewOccurrence { planned_at: at, begins_at: at, kind: OccurrenceKind::Manual, missed: None };
            // Its planned times stay as they are.
            let plan = Plan {
                job: job.id.to_string(),
                from: known.progress,
                to: known.progress,
                occurrences: vec![new],
            };
            if schedule.plan(plan).await.map_err(|error| store_error_status(&error))? {
                tracing::info!(by = %client.sender, job = %job.id, "a job is run by hand");
                self.agent.jobs.wake();
                return self.occurrence(&request.job, at).await;
            }
        }
        Err(Status::unavailable("the job is being changed: try again in a moment"))
    }

    pub(super) async fn pause_job(
        &self,
        client: &Client,
        request: PauseJobRequest,
    ) -> Result<agent::Job, Status> {
        client.require_operator("to have a job rest or go on")?;
        let job = self.configured_job(&request.job)?;
        if job.paused && !request.paused {
            return Err(Status::failed_precondition(format!(
                "the configuration has the job {} rest: remove `paused` there, and reload",
                job.id
            )));
        }
        let schedule = self.agent.store.schedule();
        self.wait_stored().await?;
        let changed = schedule.set_paused(&request.job, request.paused, to_store(now())).await;
        if changed.map_err(|error| store_error_status(&error))? {
            tracing::info!(by = %client.sender, job = %job.id, paused = request.paused, "a job rests or goes on");
            self.agent.jobs.wake();
        }
        let known = self.known_jobs().await?;
        self.job_view(&job, known.iter().find(|stored| stored.job == request.job)).await
    }

    /// The configured job of this id.
    fn configured_job(&self, id: &str) -> Result<Arc<Job>, Status> {
        let jobs = self.agent.jobs.get();
        jobs.get(id).cloned().ok_or_else(|| {
            let near = nearest(id, jobs.keys().map(String::as_str));
            let shown: String = id.chars().take(64).filter(|c| !c.is_control()).collect();
            let help = match near.first() {
                Some(near) => format!("did you mean {near}?"),
                None => "`talon schedule list` shows those there are".to_owned(),
            };
            Status::not_found(format!("there is no job {shown:?}: {help}"))
        })
    }

    /// Waits until the store knows the configured jobs: right after a start or a reload it does not yet.
    async fn wait_stored(&self) -> Result<(), Status> {
        let stored = timeout(STORED_WAIT, self.agent.jobs.wait_stored()).await;
        stored.map_err(|_| {
            Status::unavailable(
                "the jobs cannot be stored yet: see the agent's database in `talon status`, and try again",
            )
        })
    }

    async fn known_jobs(&self) -> Result<Vec<ScheduledJob>, Status> {
        self.agent.store.schedule().jobs().await.map_err(|error| store_error_status(&error))
    }

    async fn occurrence(&self, job: &str, planned_at: Timestamp) -> Result<agent::Occurrence, Status> {
        let found = self.agent.store.schedule().get(job, planned_at).await;
        let found = found.map_err(|error| store_error_status(&error))?;
        found.as_ref().map(occurrence_view).ok_or_else(|| Status::internal("the run was not stored"))
    }

    async fn job_view(&self, job: &Job, stored: Option<&ScheduledJob>) -> Result<agent::Job, Status> {
        let id = job.id.as_str();
        let last = self.agent.store.schedule().history(Some(id), &PageRequest::first(1)).await;
        let last = last.map_err(|error| store_error_status(&error))?.items;
        let paused = job.paused || stored.is_some_and(|stored| stored.paused);
        let next = stored
            .filter(|_| !paused)
            .and_then(|stored| job.recurrence.next_after(from_store(stored.progress)))
            .map(|planned| job.begins(planned));
        Ok(agent::Job {
            id: id.to_owned(),
            when: job.recurrence.to_string(),
            timezone: job.recurrence.zone().name().to_owned(),
            target: match &job.target {
                Target::Ask { .. } => "ask".to_owned(),
                Target::Action { action, .. } => format!("action {action}"),
            },
            paused,
            paused_by_configuration: job.paused,
            next_unix_ms: next.map(|next| next.as_millisecond().unsigned_abs()),
            last: last.first().map(occurrence_view),
            ..agent::Job::default()
        })
    }
}

fn occurrence_view(occurrence: &Occurrence) -> agent::Occurrence {
    agent::Occurrence {
        job: occurrence.job.clone(),
        planned_unix_ms: unix_ms(occurrence.planned_at),
        begins_unix_ms: unix_ms(occurrence.begins_at),
        kind: occurrence.kind.word().to_owned(),
        state: occurrence.state.word().to_owned(),
        attempt: occurrence.attempt,
        started_unix_ms: occurrence.started_at.map(unix_ms),
        ended_unix_ms: occurrence.ended_at.map(unix_ms),
        session_id: occurrence.session.clone().unwrap_or_default(),
        note: occurrence.note.clone(),
        result: occurrence.result.as_ref().map(|result| result.text.clone()).unwrap_or_default(),
        structured_result_json: occurrence
            .result
            .as_ref()
            .and_then(|result| result.structured.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}
