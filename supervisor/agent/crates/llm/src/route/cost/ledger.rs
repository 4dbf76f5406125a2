//! Sums of what was spent, and what is set aside for requests under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Budget, Charge, Limit, OverBudget};
use crate::route::Money;
use crate::route::catalog::ModelRef;

/// Sessions of which sums are held in memory; more than anybody has open at once. The one that was charged the longest ago makes
/// room: its share stays in all other sums, and whoever goes on with it brings its sum back by [`Ledger::open_session`].
pub const MAX_SESSIONS: usize = 4096;

/// Days since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(pub u64);

impl Day {
    /// The day of an instant; one before 1970 is taken for the first.
    #[must_use]
    pub fn of(time: std::time::SystemTime) -> Self {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(since.as_secs() / (24 * 60 * 60))
    }
}

/// A sum of charges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Answers.
    pub answers: u64,
    /// Attempts that gave none.
    pub failures: u64,
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Of these, from a cache.
    pub cached_input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// Of these, thought.
    pub thinking_tokens: u64,
    /// What all of it cost.
    pub cost: Money,
    /// Of this, what is an estimate since nobody counted.
    pub estimated_cost: Money,
}

impl Tally {
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
    tally: Tally,
    reserved: Money,
    /// When it was charged last, as a count of charges.
    touched: u64,
}

/// Sums by model and session. A provider's sum and the sum of all are those of its models.
///
/// It is lost with the process: the owner keeps each [`Charge`], and brings back what counts for a budget.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    models: BTreeMap<ModelRef, Tally>,
    sessions: BTreeMap<String, Session>,
    day: Day,
    today: Money,
    reserved: Money,
    touches: u64,
}

impl Ledger {
    /// What each model has used.
    #[must_use]
    pub fn models(&self) -> &BTreeMap<ModelRef, Tally> {
        &self.models
    }

    /// What each provider has used.
    #[must_use]
    pub fn providers(&self) -> BTreeMap<String, Tally> {
        let mut providers: BTreeMap<String, Tally> = BTreeMap::new();
        for (model, tally) in &self.models {
            providers.entry(model.provider.clone()).or_default().merge(tally);
        }
        providers
    }

    /// What a session has used.
    #[must_use]
    pub fn session(&self, session: &str) -> Tally {
        self.sessions.get(session).map(|session| session.tally).unwrap_or_default()
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.models.values().fold(Tally::default(), |mut sum, tally| {
            sum.merge(tally);
            sum
        })
    }

    /// What was spent on that day, if it is the last one on which anything was.
    #[must_use]
    pub fn spent_on(&self, day: Day) -> Money {
        if day == self.day { self.today } else { Money::ZERO }
    }

    /// What a session may still spend, and what all may today: the least of both. `None` without a limit.
    #[must_use]
    pub fn left(&self, budget: &Budget, session: &str, day: Day) -> Option<Money> {
        let limits = self.spent(budget, session, day);
        limits.into_iter().flatten().map(|(_, budget, spent)| budget.less(spent)).min()
    }

    /// Brings back what a session had used when it was last open, unless it still is.
    pub fn open_session(&mut self, session: &str, tally: Tally) {
        if !self.sessions.contains_key(session) {
            self.session_mut(session).tally = tally;
        }
    }

    /// Forgets a session that is over. Its share stays in all other sums.
    pub fn close_session(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Brings back what was spent on a day, for instance after a restart.
    pub fn open_day(&mut self, day: Day, spent: Money) {
        self.turn(day);
        if day == self.day {
            self.today = self.today.plus(spent);
        }
    }

    /// Each limit with what counts against it.
    fn spent(&self, budget: &Budget, session: &str, day: Day) -> [Option<(Limit, Money, Money)>; 2] {
        let of_session = self.sessions.get(session).copied().unwrap_or_default();
        let of_session = of_session.tally.cost.plus(of_session.reserved);
        let of_day = self.spent_on(day).plus(self.reserved);
        [
            budget.per_session.map(|limit| (Limit::Session, limit, of_session)),
            budget.per_day.map(|limit| (Limit::Day, limit, of_day)),
        ]
    }

    fn reserve(
        &mut self,
        budget: &Budget,
        session: &str,
        day: Day,
        estimate: Money,
    ) -> Result<(), OverBudget> {
        if estimate > Money::ZERO {
            for (limit, budget, spent) in self.spent(budget, session, day).into_iter().flatten() {
                if spent.plus(estimate) > budget {
                    return Err(OverBudget { limit, budget, spent, estimate });
                }
            }
        }
        let of_session = self.session_mut(session);
        of_session.reserved = of_session.reserved.plus(estimate);
        self.reserved = self.reserved.plus(estimate);
        Ok(())
    }

    fn release(&mut self, session: &str, estimate: Money) {
        // A session that was closed meanwhile is not opened again by this.
        if let Some(session) = self.sessions.get_mut(session) {
            session.reserved = session.reserved.less(estimate);
        }
        self.reserved = self.reserved.less(estimate);
    }

    fn charge(&mut self, model: &ModelRef, session: &str, day: Day, charge: &Charge, answered: bool) {
        self.turn(day);
        // A charge for a day that is over belongs to no limit any more.
        if day == self.day {
            self.today = self.today.plus(charge.cost);
        }
        self.models.entry(model.clone()).or_default().add(charge, answered);
        self.session_mut(session).tally.add(charge, answered);
    }

    /// A new day starts with nothing spent. The clock may be set back: that does not give a day's budget twice.
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

    /// One with a request under way stays, if there is any other.
    fn forget_one(&mut self) {
        let oldest =
            self.sessions.iter().min_by_key(|(_, session)| (session.reserved > Money::ZERO, session.touched));
        if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
            self.sessions.remove(&oldest);
        }
    }
}

impl Tally {
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

/// A ledger that requests share, with its budget.
///
/// What a request is expected to cost is set aside before it is asked, so that many at once do not each spend what is left.
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

    /// The same sums with another budget, for a changed configuration.
    #[must_use]
    pub fn with_budget(&self, budget: Budget) -> Self {
        Self { ledger: self.ledger.clone(), budget }
    }

    /// The limits.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The sums, locked: to be read or brought back, and let go at once.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        // No step of the ledger panics halfway.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets aside what a request will cost.
    ///
    /// # Errors
    /// [`OverBudget`]
    pub fn reserve(&self, session: &str, day: Day, estimate: Money) -> Result<Reservation, OverBudget> {
        self.lock().reserve(&self.budget, session, day, estimate)?;
        Ok(Reservation { ledgers: self.clone(), session: session.to_owned(), day, estimate })
    }
}

/// What is set aside for one request. Gives it back when dropped.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    ledgers: Ledgers,
    session: String,
    day: Day,
    estimate: Money,
}

impl Reservation {
    /// The request is over, and cost this.
    pub fn charge(self, model: &ModelRef, charge: &Charge, answered: bool) {
        self.ledgers.lock().charge(model, &self.session, self.day, charge, answered);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledgers.lock().release(&self.session, self.estimate);
    }
}
