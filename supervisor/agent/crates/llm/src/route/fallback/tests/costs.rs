//! What is charged, and what a budget stops.

use std::time::Duration;

use parking_lot::Mutex;

use super::provider::Fault;
use super::setting::{Setting, TODAY};
use crate::route::Money;
use crate::route::catalog::ModelRef;
use crate::route::cost::{Account, AccountError, Budget, BudgetScope, Charge};
use crate::route::fallback::{AnswerEvent, ChainRequest, ChainSettings, ExhaustedReason};

fn money(text: &str) -> Money {
    text.parse().expect("an amount")
}

#[tokio::test(start_paused = true)]
async fn answers_are_charged_by_count_and_half_answers_by_estimate() {
    let setting = Setting::first([Fault::BreaksOff, Fault::None, Fault::Uncounted]);
    let answered = setting.ask().await.expect("an answer");
    // 1,000 tokens in and 15 characters out, about 4 tokens: 0.001 and 0.00004.
    assert_eq!(answered.attempts[0].cost, money("0.00104"));
    assert_eq!((answered.charge.cost, answered.charge.estimated), (money("0.002"), false));
    assert_eq!(answered.total_cost(), money("0.00304"));
    let uncounted = setting.ask().await.expect("an answer");
    assert_eq!((uncounted.charge.cost, uncounted.charge.estimated), (money("0.00103"), true));
    let ledger = setting.chain.ledgers().lock().clone();
    let session = ledger.session("s");
    assert_eq!((session.answers, session.failures), (2, 1));
    assert_eq!((session.cost, session.estimated_cost), (money("0.00407"), money("0.00207")));
    assert_eq!(ledger.providers()["first"], session);
    assert_eq!(ledger.total(), session);
    assert_eq!(ledger.spent_on(TODAY), session.cost);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_said_nothing_costs_nothing() {
    let setting = Setting::all([Fault::BrokenServer, Fault::NoCredit], [], []);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!(answered.total_cost(), answered.charge.cost);
    assert_eq!(setting.chain.ledgers().lock().total().failures, 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_it_was_dropped_is_paid_for() {
    let setting = Setting::first([Fault::Slow(10, 10)]);
    let question = setting.question();
    let mut listener = |_: AnswerEvent| {};
    let asked = setting.chain.ask(&question, &mut listener);
    assert!(tokio::time::timeout(Duration::from_secs(25), asked).await.is_err());
    let total = setting.chain.ledgers().lock().total();
    // "word word ": three tokens.
    assert_eq!((total.failures, total.cost), (1, money("0.00103")));
}

#[tokio::test(start_paused = true)]
async fn a_budget_stops_before_anybody_is_asked() {
    let budget = Budget { per_session: Some(money("0.005")), per_day: None };
    let setting = Setting::with([], [], [], ChainSettings::default(), budget);
    for _ in 0..2 {
        assert_eq!(setting.answered_by().await, "first/a");
    }
    let error = setting.ask().await.expect_err("the third one would be beyond it");
    let ExhaustedReason::OverBudget(over) = &error.reason else { panic!("{error}") };
    assert_eq!(
        (over.limit, over.spent, over.estimate),
        (BudgetScope::Session, money("0.004"), money("0.002"))
    );
    assert!(error.to_string().starts_with("$0.004 of this session's budget of $0.005 are spent"), "{error}");
    assert_eq!(setting.times_asked(), [2, 0, 0]);
    assert_eq!(setting.events().last().map(String::as_str), Some("over Session"));
}

#[tokio::test(start_paused = true)]
async fn a_budget_stops_a_fallback_that_costs_too_much() {
    let budget = Budget { per_session: None, per_day: Some(money("0.0035")) };
    let setting = Setting::with([Fault::NoCredit], [], [], ChainSettings::default(), budget);
    let error = setting.ask().await.expect_err("the second one is dearer");
    assert!(matches!(&error.reason, ExhaustedReason::OverBudget(over) if over.limit == BudgetScope::Day));
    assert_eq!(error.attempts.len(), 1);
    assert!(error.to_string().ends_with("Tried: first/a (billing: no credit is left)"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn many_requests_at_once_do_not_each_spend_what_is_left() {
    let budget = Budget { per_session: Some(money("0.005")), per_day: None };
    let slow = vec![Fault::Slow(1, 10); 4];
    let setting = Setting::with(slow, [], [], ChainSettings::default(), budget);
    let results = tokio::join!(setting.ask(), setting.ask(), setting.ask(), setting.ask());
    let answered =
        [results.0, results.1, results.2, results.3].iter().filter(|result| result.is_ok()).count();
    assert_eq!(answered, 2);
}

/// Takes everything, and notes what it is told.
#[derive(Debug, Default)]
struct Noting {
    reserved: Mutex<Vec<Money>>,
    settled: Mutex<Vec<(Money, String, Money)>>,
    refuses: bool,
}

impl Account for Noting {
    fn reserve(&self, most: Money) -> Result<(), AccountError> {
        if self.refuses {
            return Err(AccountError::TooManyRequests { most: 0 });
        }
        self.reserved.lock().push(most);
        Ok(())
    }

    fn settle(&self, most: Money, model: &ModelRef, charge: &Charge) {
        self.settled.lock().push((most, model.to_string(), charge.cost));
    }
}

// Promises: EXT-171
#[tokio::test(start_paused = true)]
async fn an_account_is_told_of_each_attempt_also_of_a_dropped_one() {
    let setting = Setting::first([Fault::BreaksOff, Fault::None, Fault::Slow(10, 10)]);
    let account = Noting::default();
    let question = ChainRequest { account: Some(&account), ..setting.question() };
    let mut listener = |_: AnswerEvent| {};
    setting.chain.ask(&question, &mut listener).await.expect("an answer");
    // 1,000 tokens in, and 100 out at most: 0.001 and 0.001.
    let most = money("0.002");
    let attempt = |cost: &str| (most, "first/a".to_owned(), money(cost));
    assert_eq!(*account.settled.lock(), [attempt("0.00104"), attempt("0.002")]);
    let asked = setting.chain.ask(&question, &mut listener);
    assert!(tokio::time::timeout(Duration::from_secs(25), asked).await.is_err());
    assert_eq!(account.settled.lock().last(), Some(&attempt("0.00103")));
    assert_eq!(*account.reserved.lock(), [most; 3]);
}

// Promises: EXT-172
#[tokio::test(start_paused = true)]
async fn an_account_that_does_not_pay_ends_the_request_before_anybody_is_asked() {
    let setting = Setting::first([]);
    let account = Noting { refuses: true, ..Noting::default() };
    let question = ChainRequest { account: Some(&account), ..setting.question() };
    let error = setting.chain.ask(&question, &mut |_: AnswerEvent| {}).await.expect_err("it refuses");
    assert!(matches!(error.reason, ExhaustedReason::Account(_)), "{error}");
    assert_eq!(setting.times_asked(), [0, 0, 0]);
    assert_eq!(setting.chain.ledgers().lock().total(), Default::default());
    assert!(account.settled.lock().is_empty());
}
