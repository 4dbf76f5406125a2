//! What requests cost: an estimate before, the true cost after, sums of it, and a limit.
//!
//! A provider that counts says what an answer used, and that times the catalog's prices is its cost. Where one does not count,
//! and where an answer broke off after it had begun, the cost is an estimate and is kept as one: [`Charge::estimated`]. A failed
//! attempt of which nothing was heard costs nothing, as far as providers say.

mod budget;
mod ledger;

use serde::{Deserialize, Serialize};

pub use self::budget::{Budget, Limit, OverBudget};
pub use self::ledger::{Day, Ledger, Ledgers, MAX_SESSIONS, Reservation, Tally};
use super::catalog::Model;
use super::router::Needs;
use crate::model::Usage;
use crate::route::Money;

/// What a request will cost, as far as anybody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Tokens of the question.
    pub input_tokens: u64,
    /// Tokens that the answer is expected to have.
    pub output_tokens: u64,
    /// Both at the model's prices.
    pub cost: Money,
}

/// Estimates a request. Nothing is taken to be in the provider's cache, so that a surprise is a good one.
#[must_use]
pub fn estimate(model: &Model, needs: Needs) -> Estimate {
    let output_tokens = needs.output_tokens.min(model.output_limit());
    let prices = model.prices();
    let cost = prices.input.of(needs.input_tokens).plus(prices.output.of(output_tokens));
    Estimate { input_tokens: needs.input_tokens, output_tokens, cost }
}

/// What an attempt used and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// What it used.
    pub usage: Usage,
    /// What that costs.
    pub cost: Money,
    /// Nobody counted: the tokens are an estimate, and so is the cost.
    pub estimated: bool,
}

impl Charge {
    /// For an answer that its provider counted. Thoughts are part of the answer and cost the same.
    #[must_use]
    pub fn counted(model: &Model, usage: Usage) -> Self {
        Self { usage, cost: cost_of(model, usage), estimated: false }
    }

    /// For one that nobody counted: so many tokens went in, and so many characters came out.
    #[must_use]
    pub fn guessed(model: &Model, input_tokens: u64, output_chars: u64) -> Self {
        let output_tokens = output_chars.div_ceil(CHARS_A_TOKEN);
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        Self { usage, cost: cost_of(model, usage), estimated: true }
    }
}

/// Characters that a token is taken to have where nobody counts: the founding documents' number, which is right for English
/// and somewhat low for code. In scripts with a token a character it is too high, so estimates there are too low.
const CHARS_A_TOKEN: u64 = 4;

fn cost_of(model: &Model, usage: Usage) -> Money {
    let prices = model.prices();
    // A provider that claims to have cached more than there was is not believed.
    let cached = usage.cached_input_tokens.min(usage.input_tokens);
    let fresh = prices.input.of(usage.input_tokens - cached);
    let cached = prices.cached_input.unwrap_or(prices.input).of(cached);
    fresh.plus(cached).plus(prices.output.of(usage.output_tokens))
}

#[cfg(test)]
mod tests;
