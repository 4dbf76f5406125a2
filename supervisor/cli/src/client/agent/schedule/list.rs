//! `talon schedule list` and `next`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::{Job, JobProposal, ListJobsRequest, ListJobsResponse};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// List the jobs, with when they run next and how they ran last, and apart from them those that plugins propose.
///
/// A proposed job does not run before it is accepted.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon schedule list
  talon schedule list --output json | jq '.proposals[]'
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
        let ListJobsResponse { jobs, proposals } = all_jobs(socket).await?;
        if out.is_json() {
            out.json(&json!({ "jobs": jobs, "proposals": proposals }));
            return Ok(exit::OK);
        }
        if jobs.is_empty() {
            out.line("no jobs: write some under extensions.schedule; see docs/schedule.md");
        } else {
            let mut table = job_table(jobs);
            table.fit(out.columns());
            out.table(&table);
        }
        if !proposals.is_empty() {
            print_proposals(proposals, out);
        }
        Ok(exit::OK)
    }
}

fn job_table(jobs: Vec<Job>) -> Table {
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
            // What is to be done comes before what was.
            if job.problem.is_empty() { last.note } else { job.problem }.into(),
        ]);
    }
    table
}

/// The proposed jobs, apart from those that run, with what to do.
fn print_proposals(proposals: Vec<JobProposal>, out: &mut Output) {
    let is_waiting = |proposal: &&JobProposal| proposal.state == "proposed";
    let waiting = proposals.iter().find(is_waiting).map(|proposal| single_line(&proposal.job));
    out.line("");
    out.line("PROPOSED BY PLUGINS: none of these runs");
    let mut table = Table::of(&[
        Column::text("JOB", 0),
        Column::text("STATE", 0),
        Column::text("WHEN", 0),
        Column::text("TIMEZONE", 3),
        Column::text("ACTION", 1),
        Column::text("ARGUMENTS", 2),
        Column::prose("NOTE", 4),
    ]);
    for proposal in proposals {
        let note = match proposal.changes_accepted {
            true if proposal.state == "proposed" => "the job runs on as it was accepted".to_owned(),
            _ => proposal.problem,
        };
        table.row(vec![
            proposal.job.into(),
            proposal.state.into(),
            proposal.when.into(),
            proposal.timezone.into(),
            proposal.action.into(),
            proposal.arguments_json.into(),
            note.into(),
        ]);
    }
    table.fit(out.columns());
    out.table(&table);
    if let Some(job) = waiting {
        out.line("");
        out.line(sanitized!(
            "`talon schedule accept {}` has it run, `talon schedule reject {}` does not ask again until it changes",
            job,
            job
        ));
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
    Ok(all_jobs(socket).await?.jobs)
}

async fn all_jobs(socket: &HostSocket<'_>) -> Result<ListJobsResponse, Failure> {
    let reach = AgentConnection::connect(socket).await?;
    reach.query(|mut agent| async move { agent.list_jobs(ListJobsRequest {}).await }).await
}

/// When a job runs next, or why it does not.
pub(super) fn next(job: &Job) -> String {
    match (job.next_unix_ms, job.paused) {
        (Some(next), _) => timestamp(next).to_string(),
        (None, true) => "paused".to_owned(),
        (None, false) => "never again".to_owned(),
    }
}
