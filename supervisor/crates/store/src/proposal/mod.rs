//! Jobs that plugins propose, and what the operator decided about each of their texts.
//!
//! ```text
//! declared ──► proposed ──► accepted ──► rejected
//!                 │  └────────────────►     │
//!                 │             ▲           │
//!                 ▼             └───────────┘
//!        gone, once it is not declared any more
//! ```
//!
//! A row is unique by job and digest of the text. Only the operator's decisions outlast the declaration: one text of a job
//! is accepted at most, and a rejected text stays known, so that declaring it again proposes nothing.

mod record;

use async_trait::async_trait;

pub use record::{DeclaredProposals, JobProposal, NewProposal, ProposalDecision, ProposalState};
pub(crate) use record::{ProposalColumns, check_declared, check_proposal};

use crate::error::Error;
use crate::time::Timestamp;

/// The proposed jobs.
#[async_trait]
pub trait JobProposals: Send + Sync {
    /// Makes the undecided proposals those that are declared now. What is new begins at `now`; an undecided one that is not
    /// declared any more is deleted, unless its plugin is one of those that have not said anything yet. Returns those that
    /// are new, by job.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`MAX_DECLARED_PROPOSALS`](crate::limits::MAX_DECLARED_PROPOSALS).
    async fn declare(&self, declared: DeclaredProposals, now: Timestamp) -> Result<Vec<JobProposal>, Error>;

    /// All proposals in every state, by job and digest.
    async fn list(&self) -> Result<Vec<JobProposal>, Error>;

    /// Stores the operator's decision about one text. A text that is accepted takes the place of one that was; of rejected ones
    /// the latest [`MAX_REJECTED_PROPOSALS`](crate::limits::MAX_REJECTED_PROPOSALS) are kept. Returns the text with its new
    /// state; `None` if it is not known (any more).
    async fn decide(&self, decision: ProposalDecision, now: Timestamp) -> Result<Option<JobProposal>, Error>;

    /// Stores a decided proposal as it was exported, unless its text is known, or another of its texts is accepted and it would
    /// be, too. Returns whether it is new.
    async fn import(&self, proposal: JobProposal) -> Result<bool, Error>;
}
