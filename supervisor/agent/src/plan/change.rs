//! A plan and its changes. Pure.

use serde::{Deserialize, Serialize};
use talon_proto::agent;

use super::steps::{PlanStep, StepState, numbered, to_wire};

/// The plan of a session. Without steps there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What is to be done, in order.
    pub steps: Vec<PlanStep>,
    /// Counts its changes; 0 if there never was one.
    pub revision: u64,
    /// The last revision that a model has seen.
    #[serde(default)]
    seen: u64,
    /// Whether a model wrote the steps.
    #[serde(default)]
    of_model: bool,
    /// The call that wrote them last, so that it writes them once over a restart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    call: String,
    /// The turn in which a person approved it; 0 for none.
    #[serde(default)]
    approved_in: u64,
}

/// A change of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanChange {
    /// A model writes it anew.
    Rewrite {
        /// All steps.
        steps: Vec<PlanStep>,
        /// Identifies the call in its session.
        call: String,
    },
    /// A person changes it.
    Edit {
        /// All steps.
        steps: Vec<PlanStep>,
        /// The revision that the person saw.
        revision: u64,
    },
    /// A person approves it for this turn.
    Approve {
        /// The turn's number.
        turn: u64,
    },
    /// The model sees it as it is.
    Show,
}

/// Why a plan was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It is not the plan that was seen.
    #[error("the plan was changed meanwhile: look at it again")]
    Conflict(Box<Plan>),
    /// It is larger than the store takes.
    #[error("the plan has {bytes} bytes, and may have {most} in all: shorten its steps")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        most: usize,
    },
    /// The session cannot be read or written.
    #[error("the plan cannot be kept: {why}")]
    Store {
        /// The store's error.
        why: String,
    },
}

impl Plan {
    /// The plan after a change.
    ///
    /// # Errors
    /// [`PlanError::Conflict`]
    pub fn with(&self, change: PlanChange) -> Result<Self, PlanError> {
        let conflict = || PlanError::Conflict(Box::new(self.clone()));
        Ok(match change {
            // It was written before a restart; what a person changed since stays.
            PlanChange::Rewrite { call, .. } if !self.call.is_empty() && self.call == call => self.clone(),
            PlanChange::Rewrite { .. } if self.is_unseen() => return Err(conflict()),
            PlanChange::Rewrite { steps, call } => {
                let revision = self.revision + 1;
                Self { steps, revision, seen: revision, of_model: true, call, ..self.clone() }
            }
            PlanChange::Edit { revision, .. } if revision != self.revision => return Err(conflict()),
            PlanChange::Edit { steps, .. } => {
                Self { steps, revision: self.revision + 1, of_model: false, ..self.clone() }
            }
            // Nothing to carry out is nothing that is approved.
            PlanChange::Approve { .. } if self.steps.is_empty() => {
                Self { seen: self.revision, ..self.clone() }
            }
            PlanChange::Approve { turn } => Self { approved_in: turn, seen: self.revision, ..self.clone() },
            PlanChange::Show => Self { seen: self.revision, ..self.clone() },
        })
    }

    /// Whether a person changed it since a model saw it.
    #[must_use]
    pub fn is_unseen(&self) -> bool {
        self.seen < self.revision
    }

    /// Whether something is left to do.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.steps.iter().any(|step| step.state != StepState::Done)
    }

    /// Whether a person approved it in this turn.
    #[must_use]
    pub fn is_approved_in(&self, turn: u64) -> bool {
        turn > 0 && self.approved_in == turn
    }

    /// Whether a person wrote it as it is.
    #[must_use]
    pub fn is_edited(&self) -> bool {
        !self.of_model
    }

    /// The steps with their numbers, as a model reads them.
    #[must_use]
    pub fn text(&self) -> String {
        numbered(&self.steps)
    }

    /// The plan on the wire.
    #[must_use]
    pub fn to_wire(&self) -> agent::Plan {
        let changed_by = match (self.revision, self.of_model) {
            (0, _) => "",
            (_, true) => "model",
            (_, false) => "person",
        };
        agent::Plan {
            steps: to_wire(&self.steps),
            revision: self.revision,
            approved: self.approved_in > 0,
            changed_by: changed_by.to_owned(),
        }
    }
}
