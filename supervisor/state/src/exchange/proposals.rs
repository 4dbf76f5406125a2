//! The operator's decisions about jobs that plugins propose, as YAML: a map of `JOB DIGEST` and of what the agent stores of each, as
//! JSON. What is undecided follows from the plugins.

use talon_child::yaml::YamlWriter;
use talon_store::{JobProposal, ProposalState};

use super::entries::{self, SeenKeys};
use super::node::{Node, Problem};

pub(super) fn is_decided(proposal: &JobProposal) -> bool {
    proposal.state != ProposalState::Proposed
}

pub(super) fn write(yaml: &mut YamlWriter, proposal: &JobProposal) {
    let json = serde_json::to_vec(proposal).expect("a proposal has texts and numbers only");
    yaml.bytes(&key(proposal), &json);
}

/// Reads a decision. Returns its name for reports, and the decision.
pub(super) fn read(key: Node, value: Node, seen: &mut SeenKeys) -> (String, Result<JobProposal, Problem>) {
    let (record, entry) = entries::read(key, value, seen);
    let checked = entry.and_then(|(at, written, value)| {
        let wrong = |reason: &str| Problem { at, reason: reason.to_owned() };
        let proposal: JobProposal = serde_json::from_slice(&value)
            .map_err(|error| wrong(&format!("is no proposal as JSON in a text: {error}")))?;
        if self::key(&proposal) != written.as_str() {
            return Err(wrong("the proposal says another job or digest than its key"));
        }
        if !is_decided(&proposal) {
            return Err(wrong("only proposals that are accepted or rejected are imported"));
        }
        Ok(proposal)
    });
    (record, checked)
}

fn key(proposal: &JobProposal) -> String {
    format!("{} {}", proposal.job, proposal.digest)
}
