//! `talon schedule list` and `next`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::{Job, ListJobsRequest};

use crate::client::agent::connection::AgentConnection;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// List the jobs, with when they run next and how they ran last.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon schedule list
  talon schedule list --output json | jq -r '.jobs[] | select(.last.state == \"failed\") | .id'"
)]
pub(crate) struct ListArgs {}

/// List the jobs that will run, the next one first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule next
  talon schedule next --output json | jq -r '.jobs[0].id'")]
pub(crate) struct NextArgs {}

impl ListArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let jobs = jobs(socket).await?;
        if out.is_json() {
            out.json(&json!({ "jobs": jobs }));
            return Ok(exit::OK);
        }
        if jobs.is_empty() {
            out.line("no jobs: write some under extensions.schedule; see docs/schedule.md");
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("JOB", 0),
            Column::text("WHEN", 1),
            Column::text("TIMEZONE", 3),
            Column::text("NEXT", 0),
            Column::text("LAST", 0),
            Column::text("AT", 2),
            Column::text("DOES", 4),
            Column::prose("NOTE", 5),
        ]);
        for job in jobs {
            let next = next(&job);
            let last = job.last.unwrap_or_default();
            let planned = if last.planned_unix_ms == 0 {
                String::new()
            } else {
                timestamp(last.planned_unix_ms).to_string()
            };
            table.row(vec![
                job.id.into(),
                job.when.into(),
                job.timezone.into(),
                next.into(),
                last.state.into(),
                planned.into(),
                job.target.into(),
                last.note.into(),
            ]);
        }
        table.fit(out.columns());
        out.table(&table);
        Ok(exit::OK)
    }
}

impl NextArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut jobs = jobs(socket).await?;
        jobs.retain(|job| job.next_unix_ms.is_some());
        jobs.sort_by_key(|job| job.next_unix_ms);
        if out.is_json() {
            out.json(&json!({ "jobs": jobs }));
            return Ok(exit::OK);
        }
        if jobs.is_empty() {
            out.line("no job will run: `talon schedule list` shows those that rest or are over");
            return Ok(exit::OK);
        }
        let mut table =
            Table::of(&[Column::text("NEXT", 0), Column::text("JOB", 0), Column::text("WHEN", 1)]);
        for job in jobs {
            table.row(vec![next(&job).into(), job.id.into(), job.when.into()]);
        }
        table.fit(out.columns());
        out.table(&table);
        Ok(exit::OK)
    }
}

async fn jobs(socket: &HostSocket<'_>) -> Result<Vec<Job>, Failure> {
    let reach = AgentConnection::connect(socket).await?;
    let answer = reach.query(|mut agent| async move { agent.list_jobs(ListJobsRequest {}).await }).await?;
    Ok(answer.jobs)
}

/// When a job runs next, or why it does not.
pub(super) fn next(job: &Job) -> String {
    match (job.next_unix_ms, job.paused) {
        (Some(next), _) => timestamp(next).to_string(),
        (None, true) => "paused".to_owned(),
        (None, false) => "never again".to_owned(),
    }
}
