//! What the operator says about the order of models.

use std::collections::{BTreeMap, BTreeSet};

use crate::route::catalog::CatalogEntry;
use crate::route::task::{Complexity, Task};

/// The priority of a provider and a model without one: it leaves room on both sides.
pub const DEFAULT_PRIORITY: u32 = 100;

/// What the operator says about the order of models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// `models.default`: the first candidate for chats of moderate complexity and for orchestration. It pins
    /// nothing: the others follow.
    pub default: Option<String>,
    /// `priority` of providers.
    pub priorities: BTreeMap<String, u32>,
    /// Providers on this machine.
    pub local: BTreeSet<String>,
}

impl Routing {
    /// The priority of a model: its own, or else its provider's. Lower comes first.
    #[must_use]
    pub fn priority(&self, entry: &CatalogEntry) -> u32 {
        let provider = || self.priorities.get(&entry.id.provider).copied();
        entry.model.priority.or_else(provider).unwrap_or(DEFAULT_PRIORITY)
    }

    /// Whether a model may see the text of a request.
    pub(super) fn permits(&self, entry: &CatalogEntry, local_only: bool) -> bool {
        !local_only || self.local.contains(&entry.id.provider)
    }

    /// The first candidate of a task, if the operator names one. Simple chats, sub-agents and summaries go to
    /// the cheapest capable model, complex ones and reasoning to the best.
    pub(super) fn first(&self, task: Task, complexity: Complexity) -> Option<&str> {
        let applies = match task {
            Task::Chat => complexity == Complexity::Moderate,
            Task::Orchestration => complexity != Complexity::Complex,
            Task::Subagent | Task::Reasoning | Task::Summarization => false,
        };
        self.default.as_deref().filter(|_| applies)
    }
}
