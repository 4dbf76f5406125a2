//! Workflows: the steps that were taken for a request.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::limits::{MAX_NAME_BYTES, MAX_QUERY_BYTES, MAX_STEPS, count, name, size};
use crate::search::fold;

/// The steps that were taken for a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// The request.
    pub trigger: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The result.
    pub outcome: String,
}

/// One step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The plugin.
    pub plugin: String,
    /// The action.
    pub action: String,
    /// Its position among the steps, starting at 1.
    pub order: u32,
}

impl Step {
    /// A step.
    #[must_use]
    pub fn new(plugin: impl Into<String>, action: impl Into<String>, order: u32) -> Self {
        Self { plugin: plugin.into(), action: action.into(), order }
    }
}

impl Workflow {
    /// Checks whether the store accepts it: trigger, outcome and names within the limits, and steps in their
    /// order.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong.
    pub fn check(&self) -> Result<(), Error> {
        if self.trigger.trim().is_empty() || self.steps.is_empty() {
            return Err(Error::invalid("a workflow", "must have a trigger and steps"));
        }
        size("a workflow's trigger", self.trigger.len(), MAX_QUERY_BYTES)?;
        size("a workflow's outcome", self.outcome.len(), MAX_NAME_BYTES)?;
        count("a workflow's steps", self.steps.len(), MAX_STEPS)?;
        for step in &self.steps {
            name("a step's plugin", &step.plugin)?;
            name("a step's action", &step.action)?;
        }
        if !self.steps.windows(2).all(|pair| pair[0].order < pair[1].order) {
            return Err(Error::invalid(
                "a workflow's steps",
                "must be in their order, each with a higher number",
            ));
        }
        Ok(())
    }

    /// Identifies the same trigger and steps of the same owners. Case, accents and spaces of the trigger do
    /// not count, nor do gaps between the orders of the steps.
    ///
    /// Without an owner it equals the fingerprint that earlier versions gave every workflow.
    pub(crate) fn fingerprint<'a>(&self, owners: impl Iterator<Item = &'a str>) -> [u8; 32] {
        let mut digest = Sha256::new();
        for word in fold(&self.trigger).split_whitespace() {
            digest.update(word.as_bytes());
            digest.update([0]);
        }
        for step in &self.steps {
            // Names hold no control characters, so these separators cannot be part of one.
            digest.update([1]);
            digest.update(step.plugin.as_bytes());
            digest.update([2]);
            digest.update(step.action.as_bytes());
        }
        for owner in owners {
            digest.update([3]);
            digest.update(owner.as_bytes());
        }
        digest.finalize().into()
    }

    /// A description in words, for a memory without other content, and for the search.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = self.trigger.clone();
        for step in &self.steps {
            text.push('\n');
            text.push_str(&step.plugin);
            text.push(' ');
            text.push_str(&step.action);
        }
        text
    }
}
