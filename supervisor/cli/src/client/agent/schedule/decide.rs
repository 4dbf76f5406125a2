//! `talon schedule accept` and `reject`.

use clap::Args;
use talon_proto::agent::{DecideJobProposalRequest, Job, JobProposal, ListJobsRequest, ListJobsResponse};
use talon_sanitize::{nearest, sanitized};

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json::fields;
use crate::output::Output;

/// The fewest characters of a hash that `--hash` takes. 32, 128 bits: a plugin writes both of two texts, and of fewer it could find
/// two that share them.
const MIN_HASH_CHARS: usize = 32;

/// Accept a job that a plugin proposes: from now on it runs at its times.
///
/// What is accepted is shown, and nothing else: if the plugin changes its proposal meanwhile, the other text is proposed again, and this
/// one runs on. `talon schedule reject` ends it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule accept files.tidy
  hash=$(talon schedule list --output json | jq -r '.proposals[] | select(.job == \"files.tidy\") | .hash')
  talon schedule accept files.tidy --hash \"$hash\"")]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    proposal: ProposalArgs,
}

/// Reject a job that a plugin proposes, or end one that was accepted.
///
/// It is not proposed again until the plugin changes it. `talon schedule accept` takes it after all.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule reject files.tidy")]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    proposal: ProposalArgs,
}

#[derive(Debug, Args)]
struct ProposalArgs {
    /// The job's id, as `talon schedule list` shows it.
    #[arg(value_name = "JOB")]
    job: String,
    /// Only if this is the hash of what is proposed, or its beginning of at least 32 characters.
    #[arg(long, value_name = "HASH", value_parser = hash)]
    hash: Option<String>,
}

fn hash(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && (MIN_HASH_CHARS..=64).contains(&text.len()) {
        return Ok(text);
    }
    Err(format!(
        "write {MIN_HASH_CHARS} to 64 hexadecimal digits, as `talon schedule list --output json` has them"
    ))
}

impl AcceptArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        self.proposal.decide(true, socket, out).await
    }
}

impl RejectArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        self.proposal.decide(false, socket, out).await
    }
}

impl ProposalArgs {
    async fn decide(self, accept: bool, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let listed =
            reach.query(|mut agent| async move { agent.list_jobs(ListJobsRequest {}).await }).await?;
        let hash = self.chosen(&listed, accept).map_err(|why| Failure::new(exit::REFUSED, why))?;
        let request = DecideJobProposalRequest { job: self.job, hash, accept };
        let decided = reach.send_once(async |mut agent| agent.decide_job_proposal(request).await).await?;
        if out.is_json() {
            out.json(&fields(&decided));
        } else {
            print(&decided, accept, out);
        }
        Ok(exit::OK)
    }

    /// The hash of the text that is decided about.
    fn chosen(&self, listed: &ListJobsResponse, accept: bool) -> Result<String, String> {
        let job = self.job.as_str();
        let fits = |hash: &str| self.hash.as_deref().is_none_or(|wanted| hash.starts_with(wanted));
        let of_job = || listed.proposals.iter().filter(move |proposal| proposal.job == job);
        if let Some(invalid) = of_job().find(|proposal| proposal.state == "invalid") {
            return Err(format!("{job} cannot be decided about: {}", invalid.problem));
        }
        // Of several texts the one that waits.
        let mut open: Vec<&JobProposal> = of_job().filter(|proposal| fits(&proposal.hash)).collect();
        open.sort_by_key(|proposal| proposal.state != "proposed");
        if let Some(proposal) = open.first() {
            return Ok(proposal.hash.clone());
        }
        let is_accepted = |listed: &&Job| listed.id == job && !listed.accepted_hash.is_empty();
        if let Some(accepted) = listed.jobs.iter().find(is_accepted)
            && fits(&accepted.accepted_hash)
        {
            return Ok(accepted.accepted_hash.clone());
        }
        if of_job().next().is_some() || listed.jobs.iter().any(|one| is_accepted(&one)) {
            return Err(format!("{job} is not proposed with this hash: see `talon schedule list`"));
        }
        if !accept && listed.jobs.iter().any(|one| one.id == job) {
            return Err(format!(
                "{job} is a job of the configuration: `talon schedule pause {job}` has it rest, and it ends when it is removed from \
                 extensions.schedule"
            ));
        }
        let names = listed.proposals.iter().map(|proposal| proposal.job.as_str());
        let help = match nearest(job, names).first() {
            Some(near) => format!("did you mean {near}?"),
            None => "`talon schedule list` shows what there is".to_owned(),
        };
        Err(format!("no plugin proposes a job {job:?}: {help}"))
    }
}

fn print(decided: &JobProposal, accept: bool, out: &mut Output) {
    let job = single_line(&decided.job);
    let [when, zone, action, arguments] =
        [&decided.when, &decided.timezone, &decided.action, &decided.arguments_json]
            .map(|text| single_line(text));
    if accept {
        out.line(sanitized!("{} runs from now on: {} ({}), {} with {}", job, when, zone, action, arguments));
        out.line(sanitized!("hash {}; `talon schedule reject {}` ends it", single_line(&decided.hash), job));
    } else {
        out.line(sanitized!("{} does not run, and is not proposed again until it changes", job));
        out.line(sanitized!(
            "rejected: {} ({}), {} with {}; hash {}",
            when,
            zone,
            action,
            arguments,
            single_line(&decided.hash)
        ));
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
