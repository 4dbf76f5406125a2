//! What was tried, and the answer.

use serde::{Deserialize, Serialize};

use crate::model::{Answer, ErrorClass, ProviderError};
use crate::route::Money;
use crate::route::catalog::ModelRef;
use crate::route::cost::Charge;
use crate::route::task::{Complexity, Tier};

/// One try at one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Whom.
    pub provider: String,
    /// Which of its models.
    pub model: String,
    /// Whether it answered.
    pub success: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptError>,
    /// From the question to the end of the answer, or to the error.
    pub latency_ms: u64,
    /// What it cost.
    pub cost: Money,
}

/// Why an attempt gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptError {
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// A sentence for people.
    pub message: String,
}

impl Attempt {
    pub(super) fn answered(model: &ModelRef, latency_ms: u64, cost: Money) -> Self {
        Self { success: true, error: None, latency_ms, cost, ..Self::at(model) }
    }

    pub(super) fn failed(model: &ModelRef, error: &ProviderError, latency_ms: u64, cost: Money) -> Self {
        let error = AttemptError { class: error.class, message: error.message.clone() };
        Self { error: Some(error), latency_ms, cost, ..Self::at(model) }
    }

    fn at(model: &ModelRef) -> Self {
        Self {
            provider: model.provider.clone(),
            model: model.name.clone(),
            success: false,
            error: None,
            latency_ms: 0,
            cost: Money::ZERO,
        }
    }
}

/// An answer, and how it came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub model: ModelRef,
    /// Its tier.
    pub tier: Tier,
    /// How hard the request was found to be.
    pub complexity: Complexity,
    /// Everything that was tried; the last one is the answer.
    pub attempts: Vec<Attempt>,
    /// All of it, with the waits between.
    pub total_latency_ms: u64,
    /// What it was expected to cost.
    pub estimate: Money,
    /// What the answer used and cost. What failed attempts cost stands with them.
    pub charge: Charge,
}

impl Answered {
    /// What the answer and the failed attempts before it cost together.
    #[must_use]
    pub fn total_cost(&self) -> Money {
        self.attempts.iter().map(|attempt| attempt.cost).sum()
    }
}
