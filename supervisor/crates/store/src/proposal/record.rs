//! The rows.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::limits::{MAX_DECLARED_PROPOSALS, MAX_PROPOSAL_BYTES, count, name, size};
use crate::time::Timestamp;

/// The length of a digest: SHA-256 in hex.
const DIGEST_BYTES: usize = 64;

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalState {
    /// The operator has not decided.
    Proposed,
    /// It is a job.
    Accepted,
    /// It is none, and not proposed again.
    Rejected,
}

impl ProposalState {
    /// The state as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }

    fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "proposed" => Ok(Self::Proposed),
            "accepted" => Ok(Self::Accepted),
            "rejected" => Ok(Self::Rejected),
            _ => Err(Error::unreadable("proposal's state", format!("{word:?} is none"))),
        }
    }
}

/// One text of a job that a plugin proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobProposal {
    /// The job's id.
    pub job: String,
    /// SHA-256 of the text, in lower-case hex.
    pub digest: String,
    /// The plugin.
    pub plugin: String,
    /// What became of it.
    pub state: ProposalState,
    /// The text, as JSON.
    pub proposal: String,
    /// When it was proposed first.
    pub proposed_at: Timestamp,
    /// When the operator decided.
    pub decided_at: Option<Timestamp>,
}

/// A text that a plugin declares now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProposal {
    /// The job's id.
    pub job: String,
    /// SHA-256 of the text, in lower-case hex.
    pub digest: String,
    /// The plugin.
    pub plugin: String,
    /// The text, as JSON.
    pub proposal: String,
}

/// What all plugins declare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredProposals {
    /// What they propose.
    pub proposals: Vec<NewProposal>,
    /// Plugins that there are and that have not declared anything yet.
    pub silent: Vec<String>,
}

/// What the operator decides about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalDecision {
    /// The job's id.
    pub job: String,
    /// The digest of the text.
    pub digest: String,
    /// Whether it becomes a job.
    pub accept: bool,
}

impl ProposalDecision {
    pub(crate) fn state(&self) -> ProposalState {
        if self.accept { ProposalState::Accepted } else { ProposalState::Rejected }
    }
}

/// The columns, as both engines read them.
pub(crate) struct ProposalColumns {
    pub(crate) job: String,
    pub(crate) digest: String,
    pub(crate) plugin: String,
    pub(crate) state: String,
    pub(crate) proposal: String,
    pub(crate) proposed_at: i64,
    pub(crate) decided_at: Option<i64>,
}

impl TryFrom<ProposalColumns> for JobProposal {
    type Error = Error;

    fn try_from(columns: ProposalColumns) -> Result<Self, Error> {
        let ProposalColumns { job, digest, plugin, state, proposal, proposed_at, decided_at } = columns;
        Ok(Self {
            job,
            digest,
            plugin,
            state: ProposalState::parse(&state)?,
            proposal,
            proposed_at: Timestamp::from_millis(proposed_at),
            decided_at: decided_at.map(Timestamp::from_millis),
        })
    }
}

/// Checks what plugins declare.
pub(crate) fn check_declared(declared: &DeclaredProposals) -> Result<(), Error> {
    count("proposed jobs", declared.proposals.len(), MAX_DECLARED_PROPOSALS)?;
    declared
        .proposals
        .iter()
        .try_for_each(|new| check_text(&new.job, &new.digest, &new.plugin, &new.proposal))
}

/// Checks a proposal that is imported.
pub(crate) fn check_proposal(proposal: &JobProposal) -> Result<(), Error> {
    if proposal.state == ProposalState::Proposed {
        return Err(Error::invalid("a proposal", "must be decided: undecided ones follow from the plugins"));
    }
    check_text(&proposal.job, &proposal.digest, &proposal.plugin, &proposal.proposal)
}

fn check_text(job: &str, digest: &str, plugin: &str, proposal: &str) -> Result<(), Error> {
    name("a job's id", job)?;
    name("a plugin's name", plugin)?;
    size("a proposal", proposal.len(), MAX_PROPOSAL_BYTES)?;
    if digest.len() != DIGEST_BYTES || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::invalid("a proposal's digest", "must be SHA-256 in hex"));
    }
    if proposal.contains('\0') {
        return Err(Error::invalid("a proposal", "must not hold a NUL"));
    }
    Ok(())
}
