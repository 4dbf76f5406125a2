//! Costs of requests: an estimate before, the true cost after, totals, and a limit.
//!
//! If the provider reports the usage of an answer, usage times the catalog's prices is its cost. If it does
//! not, or if the answer broke off, the cost is an estimate and marked as such: [`Charge::estimated`]. A
//! failed attempt without any piece of an answer is free, as far as providers say.

mod account;
mod budget;
mod ledger;

use serde::{Deserialize, Serialize};

pub(crate) use self::account::AccountReservation;
pub use self::account::{Account, AccountError};
pub use self::budget::{Budget, BudgetScope, OverBudgetError};
pub use self::ledger::{Day, Ledger, Ledgers, MAX_SESSIONS, Reservation, UsageTotals};
use super::catalog::Model;
use super::requirements::Requirements;
use crate::model::Usage;
use crate::route::Money;

/// The estimated cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Tokens of the question.
    pub input_tokens: u64,
    /// Tokens that the answer is expected to have.
    pub output_tokens: u64,
    /// The cost of both at the model's prices.
    pub cost: Money,
}

/// Estimates a request, without cached tokens, so that the true cost is at most lower.
#[must_use]
pub fn estimate(model: &Model, needs: Requirements) -> Estimate {
    let output_tokens = needs.output_tokens.min(model.output_limit());
    let prices = model.prices();
    let cost = prices.input.of(needs.input_tokens).plus(prices.output.of(output_tokens));
    Estimate { input_tokens: needs.input_tokens, output_tokens, cost }
}

/// The most that an attempt with these limits costs: nothing from a cache, everything written to one, the longest answer.
#[must_use]
pub fn most(model: &Model, input_tokens: u64, max_output_tokens: u64) -> Money {
    let prices = model.prices();
    let input = prices.input.max(prices.cache_write.unwrap_or(prices.input));
    input.of(input_tokens).plus(prices.output.of(max_output_tokens.min(model.output_limit())))
}

/// Usage and cost of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// What it used.
    pub usage: Usage,
    /// What that costs.
    pub cost: Money,
    /// Whether tokens and cost are estimates, because no provider counted them.
    pub estimated: bool,
}

impl Charge {
    /// The charge of an answer whose usage the provider reported. Thoughts are part of the answer and cost
    /// the same.
    #[must_use]
    pub fn counted(model: &Model, usage: Usage) -> Self {
        Self { usage, cost: cost_of(model, usage), estimated: false }
    }

    /// The charge of an answer without reported usage, from its input tokens and output characters.
    #[must_use]
    pub fn guessed(model: &Model, input_tokens: u64, output_chars: u64) -> Self {
        let output_tokens = output_chars.div_ceil(CHARS_PER_TOKEN);
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        Self { usage, cost: cost_of(model, usage), estimated: true }
    }
}

/// Characters per token for estimates: the founding documents' number, which is right for English and
/// somewhat low for code. In scripts with about one token per character it is too high, so estimates there
/// are too low.
const CHARS_PER_TOKEN: u64 = 4;

fn cost_of(model: &Model, usage: Usage) -> Money {
    let prices = model.prices();
    // A provider that reports more cached tokens than tokens is not believed.
    let cached = usage.cached_input_tokens.min(usage.input_tokens);
    let written = usage.cache_written_tokens.min(usage.input_tokens - cached);
    let fresh = prices.input.of(usage.input_tokens - cached - written);
    let cached = prices.cached_input.unwrap_or(prices.input).of(cached);
    let written = prices.cache_write.unwrap_or(prices.input).of(written);
    fresh.plus(cached).plus(written).plus(prices.output.of(usage.output_tokens))
}

/// What the provider's cache saved of a request's cost; nothing where writing to it cost more.
#[must_use]
pub fn saved_by_cache(model: &Model, usage: Usage) -> Money {
    let without = Usage { cached_input_tokens: 0, cache_written_tokens: 0, ..usage };
    let saved = cost_of(model, without).picodollars().saturating_sub(cost_of(model, usage).picodollars());
    Money::from_picodollars(saved)
}

#[cfg(test)]
mod tests;
