//! What a plugin spends on its own account, without a call of a turn.
//!
//! The database has what was spent; here is also what is being asked. An attempt reserves the most that it may cost before
//! it is sent, and its true cost takes that place afterwards, so that requests at once do not each spend the same remainder.

use parking_lot::Mutex;
use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::route::Money;
use talon_llm::route::cost::{AccountError, Day, UsageTotals};
use talon_proto::agent::OwnBudget;

/// A plugin's own account of one day.
#[derive(Debug, Default)]
pub(super) struct OwnAccount(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The day that it was opened for last.
    day: Option<Day>,
    spent: Money,
    /// Attempts that were made, with and without an answer.
    made: u64,
    reserved: Money,
    /// Attempts that are being made.
    running: u64,
}

impl OwnAccount {
    /// Whether it was opened for this day.
    pub(super) fn is_open(&self, day: Day) -> bool {
        self.0.lock().day == Some(day)
    }

    /// Begins a day with what the database has of it. What is being asked stays reserved.
    pub(super) fn open(&self, day: Day, spent: &UsageTotals) {
        let mut state = self.0.lock();
        if state.day == Some(day) {
            return;
        }
        state.day = Some(day);
        state.spent = spent.cost;
        state.made = spent.answers.saturating_add(spent.failures);
    }

    /// Reserves the most that an attempt may cost.
    ///
    /// # Errors
    /// [`AccountError`]
    pub(super) fn reserve(&self, budget: OwnBudget, most: Money) -> Result<(), AccountError> {
        let limit = Money::from_picodollars(u128::from(budget.micro_usd_per_day) * PICOS_PER_MICRO);
        let mut state = self.0.lock();
        if state.made.saturating_add(state.running) >= budget.calls_per_day.into() {
            return Err(AccountError::TooManyRequests { most: budget.calls_per_day });
        }
        let used = state.spent.plus(state.reserved);
        // A budget of nothing is for models that cost nothing.
        if most > Money::ZERO && used.plus(most) > limit {
            return Err(AccountError::OverBudget { budget: limit, left: limit.less(used), most });
        }
        state.reserved = state.reserved.plus(most);
        state.running += 1;
        Ok(())
    }

    /// Replaces a reservation by the cost.
    pub(super) fn settle(&self, most: Money, cost: Money) {
        let mut state = self.0.lock();
        state.reserved = state.reserved.less(most);
        state.running = state.running.saturating_sub(1);
        state.spent = state.spent.plus(cost);
        state.made = state.made.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(count: u64) -> Money {
        Money::from_picodollars(u128::from(count) * PICOS_PER_MICRO)
    }

    fn open(budget: (u32, u64)) -> (OwnAccount, OwnBudget) {
        let account = OwnAccount::default();
        account.open(Day(1), &UsageTotals::default());
        (account, OwnBudget { calls_per_day: budget.0, micro_usd_per_day: budget.1 })
    }

    // Promises: EXT-172
    #[test]
    fn what_is_being_asked_counts_until_its_cost_takes_its_place() {
        let (account, budget) = open((10, 100));
        account.reserve(budget, micros(60)).expect("all of it is left");
        let refused = account.reserve(budget, micros(60)).expect_err("40 are left");
        let (limit, left, most) = (micros(100), micros(40), micros(60));
        assert_eq!(refused, AccountError::OverBudget { budget: limit, left, most });
        account.settle(micros(60), micros(10));
        account.reserve(budget, micros(60)).expect("90 are left");
        account.reserve(budget, Money::ZERO).expect("it costs nothing");
    }

    // Promises: EXT-172
    #[test]
    fn a_day_begins_with_what_the_database_has_and_a_restart_grants_nothing_twice() {
        let (account, budget) = open((3, 100));
        let spent = UsageTotals { answers: 1, failures: 1, cost: micros(90), ..UsageTotals::default() };
        account.open(Day(1), &spent);
        account.reserve(budget, micros(20)).expect("the day was open");
        account.open(Day(2), &spent);
        assert!(account.is_open(Day(2)) && !account.is_open(Day(1)));
        let refused = account.reserve(budget, Money::ZERO).expect_err("two were made, and one runs");
        assert_eq!(refused, AccountError::TooManyRequests { most: 3 });
        account.settle(micros(20), Money::ZERO);
        assert!(account.reserve(budget, Money::ZERO).is_err(), "three were made");
    }

    proptest! {
        // Promises: EXT-172
        #[test]
        fn no_order_of_attempts_goes_beyond_the_budget(
            steps in proptest::collection::vec((any::<bool>(), 0_u64..50, 0_u64..=100), 1..80)
        ) {
            let (account, budget) = open((20, 100));
            let (mut running, mut spent, mut asked) = (Vec::new(), 0, 0);
            for (begins, most, share) in steps {
                if begins {
                    if account.reserve(budget, micros(most)).is_ok() {
                        running.push(most);
                        asked += 1;
                    }
                } else if let Some(most) = running.pop() {
                    let cost = most * share / 100;
                    account.settle(micros(most), micros(cost));
                    spent += cost;
                }
                prop_assert!(spent + running.iter().sum::<u64>() <= 100);
                prop_assert!(asked <= 20);
            }
        }
    }
}
