//! The stored form of costs, by model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::{Charge, UsageTotals};

/// The most models of one sum, as many as a catalog has; further ones are counted under [`OTHERS`].
const MAX_MODELS: usize = 1000;
/// The name under which further models are counted.
const OTHERS: &str = "(other)";

/// Costs by model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostTotals {
    models: BTreeMap<ModelRef, UsageTotals>,
}

impl CostTotals {
    pub(super) fn add(&mut self, model: &ModelRef, charge: &Charge, answered: bool) {
        let Charge { usage, cost, estimated } = *charge;
        let tally = UsageTotals {
            answers: u64::from(answered),
            failures: u64::from(!answered),
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            output_tokens: usage.output_tokens,
            thinking_tokens: usage.thinking_tokens,
            cost,
            estimated_cost: if estimated { cost } else { Default::default() },
        };
        self.count(model.clone(), &tally);
    }

    fn count(&mut self, mut model: ModelRef, tally: &UsageTotals) {
        if self.models.len() >= MAX_MODELS && !self.models.contains_key(&model) {
            model = ModelRef { provider: OTHERS.to_owned(), name: OTHERS.to_owned() };
        }
        self.models.entry(model).or_default().merge(tally);
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        for (model, tally) in &other.models {
            self.count(model.clone(), tally);
        }
    }

    /// By model.
    #[must_use]
    pub fn models(&self) -> &BTreeMap<ModelRef, UsageTotals> {
        &self.models
    }

    /// By provider.
    #[must_use]
    pub fn providers(&self) -> BTreeMap<String, UsageTotals> {
        let mut providers: BTreeMap<String, UsageTotals> = BTreeMap::new();
        for (model, tally) in &self.models {
            providers.entry(model.provider.clone()).or_default().merge(tally);
        }
        providers
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> UsageTotals {
        self.models.values().fold(UsageTotals::default(), |mut sum, tally| {
            sum.merge(tally);
            sum
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads unreadable bytes as nothing: a lost sum is better than an agent that does not work.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|error| {
            tracing::error!(%error, "what was spent cannot be read, and is counted anew");
            Self::default()
        })
    }
}
