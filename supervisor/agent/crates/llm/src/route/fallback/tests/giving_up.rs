//! When there is no answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::provider::Fault;
use super::setting::Setting;
use crate::route::cost::Budget;
use crate::route::fallback::{AnswerEvent, ChainSettings, ExhaustedReason, MAX_ATTEMPTS};
use crate::route::retry::RetrySettings;

#[tokio::test(start_paused = true)]
async fn an_exhausted_chain_tells_of_every_attempt() {
    let setting = Setting::all(
        [Fault::BrokenServer, Fault::RateLimited(None), Fault::RateLimited(None)],
        [Fault::NoCredit],
        vec![Fault::DeadNetwork; 4],
    );
    let error = setting.ask().await.expect_err("all failed");
    assert_eq!(error.reason, ExhaustedReason::AllFailed);
    assert_eq!(error.attempts.len(), 8);
    assert_eq!(
        error.to_string(),
        "no model answered. Tried: first/a (server: the server has an error); first/a (rate_limit: too many requests); \
         first/b (rate_limit: too many requests); \
         second/a (billing: no credit is left); third/a (network: the connection was refused); \
         third/a (network: the connection was refused); third/a (network: the connection was refused); \
         third/a (network: the connection was refused)"
    );
    let kept = serde_json::to_value(&error.attempts[2]).expect("data");
    let expected = serde_json::json!({
        "provider": "first", "model": "b", "success": false,
        "error": { "class": "rate_limit", "message": "too many requests" },
        "latency_ms": 0, "cost": "0.00",
    });
    assert_eq!(kept, expected);
}

#[tokio::test(start_paused = true)]
async fn a_pinned_model_is_waited_for_if_it_says_when_to_come_back() {
    let mut setting = Setting::first([Fault::RateLimited(Some(7))]);
    setting.pins.session = Some("first/a".to_owned());
    let answered = setting.ask().await.expect("an answer");
    assert_eq!((answered.attempts.len(), answered.total_latency_ms), (2, 7000));
    // It is longer than the request has, or it is said twice: an error that says so.
    let mut setting = Setting::first([Fault::RateLimited(Some(601))]);
    setting.pins.session = Some("first/a".to_owned());
    let error = setting.ask().await.expect_err("too long");
    assert_eq!((error.attempts.len(), error.total_latency_ms), (1, 0));
    let error = setting.ask().await.expect_err("it rests");
    assert!(
        error.to_string().starts_with("first/a was asked for and takes no more requests for 11 min"),
        "{error}"
    );
    // The turn's own deadline may be sooner.
    let mut setting = Setting::first([Fault::RateLimited(Some(31))]);
    setting.pins.session = Some("first/a".to_owned());
    let deadline = Some(tokio::time::Instant::now() + Duration::from_secs(30));
    let question = crate::route::fallback::ChainRequest { deadline, ..setting.question() };
    let error = setting.chain.ask(&question, &mut |_: AnswerEvent| {}).await.expect_err("too long");
    assert_eq!(error.total_latency_ms, 0);
    let mut setting = Setting::first(vec![Fault::RateLimited(Some(7)); 3]);
    setting.pins.session = Some("first/a".to_owned());
    assert_eq!(setting.ask().await.expect_err("twice").attempts.len(), 2);
    // A second request that comes while it rests waits as the first one did.
    assert_eq!(setting.ask().await.expect("an answer").total_latency_ms, 14_000);
}

#[tokio::test(start_paused = true)]
async fn patience_bounds_everything_together() {
    let settings = ChainSettings { patience: Duration::from_secs(200), ..super::setting::bounded() };
    let hang = || vec![Fault::Hang; 9];
    let setting = Setting::with(hang(), hang(), hang(), settings, Budget::default());
    let error = setting.ask().await.expect_err("nobody answers");
    assert_eq!(error.total_latency_ms, 200_000);
    assert_eq!(error.reason, ExhaustedReason::DeadlineExceeded { patience: settings.patience });
    assert!(
        error.to_string().starts_with("no model answered within 4 min. Tried: first/a (timeout:"),
        "{error}"
    );
    // Retries ended at half of it, so that somebody else had a turn.
    let models: Vec<String> =
        error.attempts.iter().map(|one| format!("{}/{}", one.provider, one.model)).collect();
    assert_eq!(models, ["first/a", "first/a", "second/a"]);
    assert_eq!(setting.first.under_way.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded() {
    let retry = RetrySettings { retries: 10, ..RetrySettings::default() };
    let settings = ChainSettings { retry, ..ChainSettings::default() };
    let dead = || vec![Fault::DeadNetwork; 40];
    let setting = Setting::with(dead(), dead(), dead(), settings, Budget::default());
    let error = setting.ask().await.expect_err("all are dead");
    assert_eq!(error.attempts.len(), MAX_ATTEMPTS);
}

#[tokio::test(start_paused = true)]
async fn nobody_to_ask_is_told_without_asking() {
    let mut setting = Setting::first([]);
    setting.pins.request = Some("fisrt/a".to_owned());
    let error = setting.ask().await.expect_err("no such model");
    assert!(error.to_string().contains("the nearest are first/a"), "{error}");
    let mut setting = Setting::first([]);
    setting.chain = setting
        .chain
        .without("first", "set FIRST_API_KEY")
        .without("second", "set SECOND_API_KEY")
        .without("third", "set THIRD_API_KEY");
    let error = setting.ask().await.expect_err("no key");
    assert!(error.to_string().contains("first/a is not set up: set FIRST_API_KEY"), "{error}");
    assert_eq!(error.skipped.len(), 4);
    assert_eq!(setting.times_asked(), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn dropping_it_ends_the_attempt_under_way_and_gives_everything_back() {
    let budget = Budget { per_session: Some("1".parse().expect("an amount")), per_day: None };
    let setting = Setting::with([Fault::Hang], [], [], ChainSettings::default(), budget);
    let question = setting.question();
    let mut listener = |_: AnswerEvent| {};
    {
        let asked = setting.chain.ask(&question, &mut listener);
        let gave_up = tokio::time::timeout(Duration::from_secs(5), asked).await;
        assert!(gave_up.is_err());
    }
    assert_eq!(setting.first.times_asked(), 1);
    assert_eq!(setting.first.under_way.load(Ordering::Relaxed), 0);
    let left = setting.chain.ledgers().lock().left(&budget, "s", super::setting::TODAY);
    assert_eq!(left, budget.per_session);
    assert_eq!(setting.answered_by().await, "first/a");
}

#[test]
fn a_request_can_be_a_task_of_its_own() {
    fn is_send(_: &(impl Send + ?Sized)) {}
    let setting = Setting::first([]);
    let question = setting.question();
    let mut listener = |_: AnswerEvent| {};
    is_send(&setting.chain.ask(&question, &mut listener));
    is_send(&setting.chain);
}
