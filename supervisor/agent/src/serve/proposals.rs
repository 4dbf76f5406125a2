//! Jobs that plugins propose, and decisions about them.

use talon_proto::agent::{DecideJobProposalRequest, JobProposal};
use talon_schedule::Proposal;
use talon_store::ProposalDecision;
use tonic::Status;

use super::client::{Client, Origin};
use super::service::Service;
use super::sessions::unix_ms;
use crate::error_status::store_error_status;
use crate::proposals::{DecideError, InvalidProposal, KnownProposals};

impl Service {
    /// Accepts or rejects one text of a job that a plugin proposes. A plugin has no connection on which it could.
    pub(super) async fn decide_job_proposal(
        &self,
        client: &Client,
        request: DecideJobProposalRequest,
    ) -> Result<JobProposal, Status> {
        client.require_operator("to decide about a proposed job")?;
        if client.origin != Origin::Person {
            tracing::warn!(client.uid, client.pid, origin = ?client.origin, "a decision that no person made was refused");
            return Err(Status::permission_denied(
                "only a person decides: this connection is a model's or a program's; use `talon schedule accept` by hand",
            ));
        }
        let DecideJobProposalRequest { job, hash, accept } = request;
        let decision = ProposalDecision { job: job.clone(), digest: hash.clone(), accept };
        let decided = self.agent.proposals.decide(decision).await;
        let verb = if accept { "accept_job" } else { "reject_job" };
        let problem = decided.as_ref().err().map(ToString::to_string).unwrap_or_default();
        tracing::info!(by = %client.sender, verb, job, hash, problem, "an operator decided about a proposed job");
        Ok(view(&decided.map_err(|error| status(&error))?))
    }
}

/// What is proposed and not accepted, by the jobs' ids.
pub(super) fn open_proposals(known: &KnownProposals) -> Vec<JobProposal> {
    let is_accepted = |job: &str| known.accepted.iter().any(|(accepted, _)| accepted.job == job);
    let open =
        known.open.iter().map(|one| JobProposal { changes_accepted: is_accepted(&one.job), ..view(one) });
    let mut all: Vec<JobProposal> = open.chain(known.invalid.iter().map(invalid)).collect();
    all.sort_by(|one, other| one.job.cmp(&other.job));
    all
}

fn view(stored: &talon_store::JobProposal) -> JobProposal {
    let mut view = JobProposal {
        job: stored.job.clone(),
        plugin: stored.plugin.clone(),
        hash: stored.digest.clone(),
        state: stored.state.word().to_owned(),
        proposed_unix_ms: unix_ms(stored.proposed_at),
        decided_unix_ms: stored.decided_at.map(unix_ms),
        ..JobProposal::default()
    };
    let text = Proposal::from_json(&stored.proposal).map_err(|error| error.to_string());
    match text.and_then(|text| text.job().map(|job| (text, job)).map_err(|error| error.to_string())) {
        Ok((text, job)) => {
            view.action = text.action;
            view.arguments_json = serde_json::Value::Object(text.args).to_string();
            view.when = job.recurrence.to_string();
            view.timezone = job.recurrence.zone().name().to_owned();
        }
        Err(error) => view.problem = format!("this version cannot run it: {error}"),
    }
    view
}

fn invalid(invalid: &InvalidProposal) -> JobProposal {
    JobProposal {
        job: invalid.job.clone(),
        plugin: invalid.plugin.clone(),
        action: invalid.action.clone(),
        state: "invalid".to_owned(),
        problem: invalid.problem.clone(),
        ..JobProposal::default()
    }
}

fn status(error: &DecideError) -> Status {
    match error {
        DecideError::NoSuchJob { .. } => Status::not_found(error.to_string()),
        DecideError::NoSuchText { .. }
        | DecideError::Configured { .. }
        | DecideError::TooMany
        | DecideError::Invalid(_) => Status::failed_precondition(error.to_string()),
        DecideError::Store(error) => store_error_status(error),
    }
}
