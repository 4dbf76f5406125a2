//! Attempts and answers.

use serde::{Deserialize, Serialize};

use crate::model::{Answer, ErrorClass, ProviderError};
use crate::route::Money;
use crate::route::catalog::ModelRef;
use crate::route::cost::Charge;
use crate::route::task::{Complexity, Tier};

/// One attempt at one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Whether it answered.
    pub success: bool,
    /// The error, if there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptError>,
    /// The time from the question to the end of the answer, or to the error.
    pub latency_ms: u64,
    /// The cost.
    pub cost: Money,
}

/// Why an attempt gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptError {
    /// The class of the failure.
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

/// An answer, with its attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// The model that answered.
    pub model: ModelRef,
    /// Its tier.
    pub tier: Tier,
    /// The request's complexity.
    pub complexity: Complexity,
    /// All attempts; the last one has the answer.
    pub attempts: Vec<Attempt>,
    /// The total time, including the waits between attempts.
    pub total_latency_ms: u64,
    /// The estimated cost.
    pub estimate: Money,
    /// Usage and cost of the answer. Those of failed attempts are in `attempts`.
    pub charge: Charge,
}

impl Answered {
    /// The cost of the answer and of the failed attempts before it.
    #[must_use]
    pub fn total_cost(&self) -> Money {
        self.attempts.iter().map(|attempt| attempt.cost).sum()
    }
}
