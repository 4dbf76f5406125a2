//! What may become a question to a model.

use serde::{Deserialize, Serialize};

/// An observation, as far as the policy looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The observation's id.
    pub id: String,
    /// Which detector found something; empty for none.
    pub trigger: String,
    /// The work tree; empty outside of one.
    pub repository: String,
    /// What is the same finding.
    pub fingerprint: String,
    /// Whether a piece of work ended with it.
    pub boundary: bool,
    /// When the agent got it.
    pub at_ms: u64,
}

impl Candidate {
    /// Whether a boundary in this repository is one for it. A boundary outside of a repository, such as that of a shell,
    /// counts everywhere.
    #[must_use]
    pub fn is_released_by(&self, repository: &str) -> bool {
        repository.is_empty() || self.repository.is_empty() || self.repository == repository
    }
}
