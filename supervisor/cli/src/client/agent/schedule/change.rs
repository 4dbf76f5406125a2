//! `talon schedule run`, `pause` and `resume`.

use clap::Args;
use talon_proto::agent::{Job, PauseJobRequest, RunJobRequest};
use talon_sanitize::sanitized;

use super::list::next;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json::fields;
use crate::output::Output;

/// Run a job now, beside its planned times.
///
/// It also runs while the job is paused. If the job is running already, the run waits for it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule run digest")]
pub(crate) struct RunArgs {
    /// The job's id.
    #[arg(value_name = "JOB")]
    job: String,
}

/// Let a job rest: its planned times pass without a run, and are not missed ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule pause digest")]
pub(crate) struct PauseArgs {
    /// The job's id.
    #[arg(value_name = "JOB")]
    job: String,
}

/// Let a paused job go on, with its next planned time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule resume digest")]
pub(crate) struct ResumeArgs {
    /// The job's id.
    #[arg(value_name = "JOB")]
    job: String,
}

impl RunArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = RunJobRequest { job: self.job };
        let run = reach.send_once(async |mut agent| agent.run_job(request).await).await?;
        if out.is_json() {
            out.json(&fields(&run));
        } else {
            let job = single_line(&run.job);
            out.line(sanitized!("{} runs: `talon schedule history {}` shows how", job, job));
        }
        Ok(exit::OK)
    }
}

impl PauseArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let job = set_paused(self.job, true, socket).await?;
        if out.is_json() {
            out.json(&fields(&job));
        } else {
            let id = single_line(&job.id);
            out.line(sanitized!("{} is paused: `talon schedule resume {}` lets it go on", id, id));
        }
        Ok(exit::OK)
    }
}

impl ResumeArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let job = set_paused(self.job, false, socket).await?;
        if out.is_json() {
            out.json(&fields(&job));
        } else {
            out.line(sanitized!("{} goes on; next: {}", single_line(&job.id), single_line(&next(&job))));
        }
        Ok(exit::OK)
    }
}

async fn set_paused(job: String, paused: bool, socket: &HostSocket<'_>) -> Result<Job, Failure> {
    let reach = AgentConnection::connect(socket).await?;
    let request = PauseJobRequest { job, paused };
    reach.send_once(async |mut agent| agent.pause_job(request).await).await
}
