//! Cost totals, and reservations for requests in flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::{Budget, BudgetScope, Charge, OverBudgetError};
use crate::route::Money;
use crate::route::catalog::ModelRef;

/// The most sessions in memory, more than are ever open at once. The least recently charged one is dropped:
/// its share stays in all other totals, and its owner restores its total by [`Ledger::open_session`].
pub const MAX_SESSIONS: usize = 4096;

/// Days since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(pub u64);

impl Day {
    /// The day of an instant; times before 1970 count as the first day.
    #[must_use]
    pub fn of(time: std::time::SystemTime) -> Self {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(since.as_secs() / (24 * 60 * 60))
    }
}

/// Totals of charges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Answers.
    pub answers: u64,
    /// Attempts without an answer.
    pub failures: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Of these, from a cache.
    pub cached_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Of these, thinking.
    pub thinking_tokens: u64,
    /// The total cost.
    pub cost: Money,
    /// Of this, estimates for answers that no provider counted.
    pub estimated_cost: Money,
}

impl UsageTotals {
    fn add(&mut self, charge: &Charge, answered: bool) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(if answered { &mut self.answers } else { &mut self.failures }, 1);
        sum(&mut self.input_tokens, charge.usage.input_tokens);
        sum(&mut self.cached_input_tokens, charge.usage.cached_input_tokens);
        sum(&mut self.output_tokens, charge.usage.output_tokens);
        sum(&mut self.thinking_tokens, charge.usage.thinking_tokens);
        self.cost = self.cost.plus(charge.cost);
        if charge.estimated {
            self.estimated_cost = self.estimated_cost.plus(charge.cost);
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Session {
    totals: UsageTotals,
    reserved: Money,
    /// When it was last charged, as a sequence number of charges.
    touched: u64,
}

/// Totals by model and session. A provider's total and the grand total are sums over its models.
///
/// They are in memory only: the owner stores each [`Charge`], and restores what counts for a budget.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    models: BTreeMap<ModelRef, UsageTotals>,
    sessions: BTreeMap<String, Session>,
    day: Day,
    today: Money,
    reserved: Money,
    touches: u64,
}

impl Ledger {
    /// What each model has used.
    #[must_use]
    pub fn models(&self) -> &BTreeMap<ModelRef, UsageTotals> {
        &self.models
    }

    /// What each provider has used.
    #[must_use]
    pub fn providers(&self) -> BTreeMap<String, UsageTotals> {
        let mut providers: BTreeMap<String, UsageTotals> = BTreeMap::new();
        for (model, tally) in &self.models {
            providers.entry(model.provider.clone()).or_default().merge(tally);
        }
        providers
    }

    /// What a session has used.
    #[must_use]
    pub fn session(&self, session: &str) -> UsageTotals {
        self.sessions.get(session).map(|session| session.totals).unwrap_or_default()
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> UsageTotals {
        self.models.values().fold(UsageTotals::default(), |mut sum, tally| {
            sum.merge(tally);
            sum
        })
    }

    /// What was spent on a day, if it is the latest with charges.
    #[must_use]
    pub fn spent_on(&self, day: Day) -> Money {
        if day == self.day { self.today } else { Money::ZERO }
    }

    /// What a session may still spend within its own and the daily limit. `None` without a limit.
    #[must_use]
    pub fn left(&self, budget: &Budget, session: &str, day: Day) -> Option<Money> {
        let limits = self.spent(budget, session, day);
        limits.into_iter().flatten().map(|(_, budget, spent)| budget.less(spent)).min()
    }

    /// Restores a session's total, unless the session is still in memory.
    pub fn open_session(&mut self, session: &str, tally: UsageTotals) {
        if !self.sessions.contains_key(session) {
            self.session_mut(session).totals = tally;
        }
    }

    /// Removes a closed session. Its share stays in all other totals.
    pub fn close_session(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Restores a day's total, for instance after a restart.
    pub fn open_day(&mut self, day: Day, spent: Money) {
        self.turn(day);
        if day == self.day {
            self.today = self.today.plus(spent);
        }
    }

    /// Each limit with the amount that counts against it.
    fn spent(&self, budget: &Budget, session: &str, day: Day) -> [Option<(BudgetScope, Money, Money)>; 2] {
        let of_session = self.sessions.get(session).copied().unwrap_or_default();
        let of_session = of_session.totals.cost.plus(of_session.reserved);
        let of_day = self.spent_on(day).plus(self.reserved);
        [
            budget.per_session.map(|limit| (BudgetScope::Session, limit, of_session)),
            budget.per_day.map(|limit| (BudgetScope::Day, limit, of_day)),
        ]
    }

    fn reserve(
        &mut self,
        budget: &Budget,
        session: &str,
        day: Day,
        estimate: Money,
    ) -> Result<(), OverBudgetError> {
        if estimate > Money::ZERO {
            for (limit, budget, spent) in self.spent(budget, session, day).into_iter().flatten() {
                if spent.plus(estimate) > budget {
                    return Err(OverBudgetError { limit, budget, spent, estimate });
                }
            }
        }
        let of_session = self.session_mut(session);
        of_session.reserved = of_session.reserved.plus(estimate);
        self.reserved = self.reserved.plus(estimate);
        Ok(())
    }

    fn release(&mut self, session: &str, estimate: Money) {
        // A session that was closed in the meantime is not opened again.
        if let Some(session) = self.sessions.get_mut(session) {
            session.reserved = session.reserved.less(estimate);
        }
        self.reserved = self.reserved.less(estimate);
    }

    fn charge(&mut self, model: &ModelRef, session: &str, day: Day, charge: &Charge, answered: bool) {
        self.turn(day);
        // A charge for an earlier day counts for no daily limit any more.
        if day == self.day {
            self.today = self.today.plus(charge.cost);
        }
        self.models.entry(model.clone()).or_default().add(charge, answered);
        self.session_mut(session).totals.add(charge, answered);
    }

    /// A new day starts with nothing spent. If the clock is set back, a day's budget is not granted twice.
    fn turn(&mut self, day: Day) {
        if day > self.day {
            self.day = day;
            self.today = Money::ZERO;
        }
    }

    fn session_mut(&mut self, session: &str) -> &mut Session {
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(session) {
            self.forget_one();
        }
        self.touches += 1;
        let entry = self.sessions.entry(session.to_owned()).or_default();
        entry.touched = self.touches;
        entry
    }

    /// Drops a session, if possible one without a request in flight.
    fn forget_one(&mut self) {
        let oldest =
            self.sessions.iter().min_by_key(|(_, session)| (session.reserved > Money::ZERO, session.touched));
        if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
            self.sessions.remove(&oldest);
        }
    }
}

impl UsageTotals {
    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(&mut self.answers, other.answers);
        sum(&mut self.failures, other.failures);
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.cached_input_tokens, other.cached_input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.thinking_tokens, other.thinking_tokens);
        self.cost = self.cost.plus(other.cost);
        self.estimated_cost = self.estimated_cost.plus(other.estimated_cost);
    }
}

/// A shared ledger with its budget.
///
/// A request's estimate is reserved before it is sent, so that concurrent requests do not each spend the same
/// remainder.
#[derive(Debug, Clone, Default)]
pub struct Ledgers {
    ledger: Arc<Mutex<Ledger>>,
    budget: Budget,
}

impl Ledgers {
    /// An empty one.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self { ledger: Arc::default(), budget }
    }

    /// The same totals with another budget, for a changed configuration.
    #[must_use]
    pub fn with_budget(&self, budget: Budget) -> Self {
        Self { ledger: self.ledger.clone(), budget }
    }

    /// The limits.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Locks the totals, to read or restore them; release the lock at once.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// Reserves a request's estimate.
    ///
    /// # Errors
    /// [`OverBudgetError`]
    pub fn reserve(&self, session: &str, day: Day, estimate: Money) -> Result<Reservation, OverBudgetError> {
        self.lock().reserve(&self.budget, session, day, estimate)?;
        Ok(Reservation { ledgers: self.clone(), session: session.to_owned(), day, estimate })
    }
}

/// A request's reservation, released on drop.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    ledgers: Ledgers,
    session: String,
    day: Day,
    estimate: Money,
}

impl Reservation {
    /// Replaces the reservation by the true cost.
    pub fn charge(self, model: &ModelRef, charge: &Charge, answered: bool) {
        self.ledgers.lock().charge(model, &self.session, self.day, charge, answered);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledgers.lock().release(&self.session, self.estimate);
    }
}
