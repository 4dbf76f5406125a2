//! The money of one day, as the account of a question.

use parking_lot::Mutex;
use talon_llm::route::Money;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::{Account, AccountError, Charge};

/// What a question may cost, by what is left of the day; and what its attempts did cost.
#[derive(Debug)]
pub(super) struct QuestionAccount {
    budget: Option<Money>,
    state: Mutex<SpentTotals>,
}

#[derive(Debug, Clone, Copy)]
struct SpentTotals {
    money: Money,
    tokens: u64,
}

impl QuestionAccount {
    /// With what was spent today before.
    pub(super) fn new(budget: Option<Money>, spent: Money) -> Self {
        Self { budget, state: Mutex::new(SpentTotals { money: spent, tokens: 0 }) }
    }

    /// The tokens of all attempts.
    pub(super) fn tokens(&self) -> u64 {
        self.state.lock().tokens
    }
}

impl Account for QuestionAccount {
    fn reserve(&self, most: Money) -> Result<(), AccountError> {
        let Some(budget) = self.budget else { return Ok(()) };
        let spent = self.state.lock().money;
        // A budget of nothing is for models that cost nothing. One attempt is made at a time.
        if most > Money::ZERO && spent.plus(most) > budget {
            return Err(AccountError::OverBudget { budget, left: budget.less(spent), most });
        }
        Ok(())
    }

    fn settle(&self, _most: Money, _model: &ModelRef, charge: &Charge) {
        let mut state = self.state.lock();
        state.money = state.money.plus(charge.cost);
        let used = charge.usage.input_tokens.saturating_add(charge.usage.output_tokens);
        state.tokens = state.tokens.saturating_add(used);
    }
}
