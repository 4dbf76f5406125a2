//! What each class of failure brings about.

use std::time::Duration;

use tokio::time::Instant;

use super::provider::Fault;
use super::setting::Setting;
use crate::model::ErrorClass;
use crate::route::cost::Budget;
use crate::route::fallback::{AnswerEvent, Attempt, ChainSettings, ExhaustedReason, ProviderState};

fn summary(attempts: &[Attempt]) -> Vec<(String, Option<ErrorClass>)> {
    attempts
        .iter()
        .map(|attempt| {
            let class = attempt.error.as_ref().map(|error| error.class);
            assert_eq!(attempt.success, class.is_none());
            (format!("{}/{}", attempt.provider, attempt.model), class)
        })
        .collect()
}

fn at(model: &str, class: Option<ErrorClass>) -> (String, Option<ErrorClass>) {
    (model.to_owned(), class)
}

#[tokio::test(start_paused = true)]
async fn a_healthy_primary_answers_alone() {
    let setting = Setting::first([]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!(answered.model.to_string(), "first/a");
    assert_eq!(summary(&answered.attempts), [at("first/a", None)]);
    assert_eq!(answered.charge.cost.to_string(), "0.002");
    assert_eq!(answered.estimate.to_string(), "0.002");
    assert_eq!(setting.times_asked(), [1, 0, 0]);
    assert_eq!(setting.events(), ["simple to first/a", "first/a $0.002 true"]);
}

#[tokio::test(start_paused = true)]
async fn a_dead_network_is_tried_four_times_and_left_with_all_its_models() {
    let setting = Setting::first(vec![Fault::DeadNetwork; 4]);
    let started = Instant::now();
    let answered = setting.ask().await.expect("an answer");
    let network = Some(ErrorClass::Network);
    let mut expected = vec![at("first/a", network); 4];
    expected.push(at("second/a", None));
    assert_eq!(summary(&answered.attempts), expected);
    let waited = started.elapsed();
    let between = Duration::from_millis(3500)..=Duration::from_millis(3660);
    assert!(between.contains(&waited), "{waited:?}");
    let events = setting.events();
    let told: Vec<&str> = events.iter().map(String::as_str).filter(|told| !told.contains('$')).collect();
    assert_eq!(
        told,
        [
            "simple to first/a",
            "retry 1 of first/a",
            "retry 2 of first/a",
            "retry 3 of first/a",
            "network first/a to second/a"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_network_that_comes_back_is_not_left() {
    let setting = Setting::first(vec![Fault::DeadNetwork; 3]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!((answered.attempts.len(), answered.model.to_string().as_str()), (4, "first/a"));
    assert_eq!(setting.times_asked(), [4, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up_four_times_and_another_provider_is_asked() {
    let setting = Setting::first(vec![Fault::Hang; 4]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!(answered.attempts.len(), 5);
    assert_eq!(answered.model.to_string(), "second/a");
    let error = answered.attempts[0].error.as_ref().expect("it hung");
    assert_eq!((error.class, error.message.as_str()), (ErrorClass::Timeout, "no sign of an answer for 90 s"));
    assert_eq!(answered.attempts[0].latency_ms, 90_000);
    assert!((363_500..=363_700).contains(&answered.total_latency_ms), "{}", answered.total_latency_ms);
}

#[tokio::test(start_paused = true)]
async fn who_speaks_slowly_is_not_given_up() {
    let setting = Setting::first([Fault::Slow(6, 80)]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!((answered.attempts.len(), answered.total_latency_ms), (1, 480_000));
}

#[tokio::test(start_paused = true)]
async fn retries_end_where_the_next_one_would_have_no_time() {
    let setting = Setting::with(vec![Fault::Hang; 4], [], [], ChainSettings::default(), Budget::default());
    let answered = setting.ask().await.expect("an answer");
    let timeout = Some(ErrorClass::Timeout);
    assert_eq!(summary(&answered.attempts), [at("first/a", timeout), at("second/a", None)]);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_fall_back_at_once_and_the_model_rests_as_long_as_it_says() {
    let setting = Setting::first([Fault::RateLimited(Some(120))]);
    let started = Instant::now();
    let answered = setting.ask().await.expect("an answer");
    let limited = Some(ErrorClass::RateLimit);
    assert_eq!(summary(&answered.attempts), [at("first/a", limited), at("first/b", None)]);
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(setting.events().contains(&"first/a rests 120 s".to_owned()));
    tokio::time::advance(Duration::from_secs(119)).await;
    assert_eq!(setting.answered_by().await, "first/b");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(setting.answered_by().await, "first/a");
}

#[tokio::test(start_paused = true)]
async fn no_credit_falls_back_to_another_provider_and_comes_back_in_ten_minutes() {
    let setting = Setting::first([Fault::NoCredit]);
    let answered = setting.ask().await.expect("an answer");
    let billing = Some(ErrorClass::Billing);
    assert_eq!(summary(&answered.attempts), [at("first/a", billing), at("second/a", None)]);
    assert!(setting.events().contains(&"first/* rests 600 s".to_owned()));
    assert_eq!(setting.answered_by().await, "second/a");
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(setting.answered_by().await, "first/a");
}

// Promises: AGENT-68
#[tokio::test(start_paused = true)]
async fn the_last_provider_is_asked_again_after_it_had_no_credit() {
    let mut setting = Setting::first(vec![Fault::NoCredit; 2]);
    setting.pins.session = Some("first/a".to_owned());
    for _ in 0..2 {
        let error = setting.ask().await.expect_err("no credit");
        assert_eq!(summary(&error.attempts), [at("first/a", Some(ErrorClass::Billing))]);
    }
    assert_eq!(setting.chain.provider_state("first", Instant::now()), ProviderState::Ready);
    assert_eq!(setting.answered_by().await, "first/a");
}

#[tokio::test(start_paused = true)]
async fn a_broken_server_is_asked_again_and_then_left_for_another_model() {
    let server = Some(ErrorClass::Server);
    let setting = Setting::first([Fault::BrokenServer]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!(summary(&answered.attempts), [at("first/a", server), at("first/a", None)]);
    let setting = Setting::first(vec![Fault::BrokenServer; 4]);
    let answered = setting.ask().await.expect("an answer");
    let mut expected = vec![at("first/a", server); 4];
    expected.push(at("first/b", None));
    assert_eq!(summary(&answered.attempts), expected);
}

// Promises: AGENT-68
#[tokio::test(start_paused = true)]
async fn the_last_provider_that_can_be_asked_is_never_left_alone() {
    let mut setting = Setting::first(vec![Fault::BrokenServer; 40]);
    setting.pins.session = Some("first/a".to_owned());
    for _ in 0..9 {
        setting.ask().await.expect_err("it is broken");
    }
    let state = setting.chain.provider_state("first", Instant::now());
    assert_eq!(state, ProviderState::Ready);
    assert!(!setting.events().iter().any(|event| event.contains("Open")));
}

// Promises: AGENT-68
#[tokio::test(start_paused = true)]
async fn a_wait_is_said_and_only_where_no_other_model_is_ready() {
    let limited = || vec![Fault::RateLimited(Some(90))];
    let setting = Setting::first(limited());
    let mut said = Vec::new();
    let answered = setting
        .chain
        .ask(&setting.question(), &mut |event: AnswerEvent| said.push(event))
        .await
        .expect("an answer");
    assert_eq!((answered.model.to_string().as_str(), answered.total_latency_ms), ("first/b", 0));
    assert!(!said.iter().any(|event| matches!(event, AnswerEvent::Waiting { .. })));
    let mut setting = Setting::first(limited());
    setting.pins.session = Some("first/a".to_owned());
    let mut said = Vec::new();
    let answered = setting
        .chain
        .ask(&setting.question(), &mut |event: AnswerEvent| said.push(event))
        .await
        .expect("an answer");
    assert_eq!(answered.total_latency_ms, 90_000);
    let AnswerEvent::Waiting { model, wait, class } = &said[0] else { panic!("{said:?}") };
    assert_eq!((model.to_string().as_str(), wait.as_secs(), *class), ("first/a", 90, ErrorClass::RateLimit));
}

#[tokio::test(start_paused = true)]
async fn what_another_provider_would_hide_is_told_at_once() {
    for (fault, class) in [
        (Fault::WrongKey, ErrorClass::Auth),
        (Fault::TooLong, ErrorClass::Context),
        (Fault::BadRequest, ErrorClass::Request),
    ] {
        let setting = Setting::first([fault]);
        let error = setting.ask().await.expect_err("it is final");
        assert_eq!(error.class(), Some(class));
        assert!(matches!(error.reason, ExhaustedReason::Final(_)));
        assert_eq!(setting.times_asked(), [1, 0, 0]);
        assert_eq!(summary(&error.attempts), [at("first/a", Some(class))]);
        // The session stays usable.
        assert_eq!(setting.answered_by().await, "first/a");
    }
}

#[tokio::test(start_paused = true)]
async fn a_final_error_of_the_second_tells_of_the_first_too() {
    let setting = Setting::all([Fault::NoCredit], [Fault::WrongKey], []);
    let error = setting.ask().await.expect_err("it is final");
    let text = error.to_string();
    assert_eq!(text, "second/a: the key is wrong. Tried: first/a (billing: no credit is left)");
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_asks_for_is_waited_for_within_a_bound() {
    let setting = Setting::first([Fault::Unreachable(7)]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!(answered.model.to_string(), "first/a");
    assert!((7000..=7050).contains(&answered.total_latency_ms), "{}", answered.total_latency_ms);
    let setting = Setting::first([Fault::Unreachable(31)]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!((answered.model.to_string().as_str(), answered.total_latency_ms), ("second/a", 0));
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_for_gets_the_request_in_its_own_measure() {
    let mut setting = Setting::first([]);
    setting.request.max_output_tokens = Some(50_000);
    setting.answered_by().await;
    let sent = setting.first.last.lock().clone().expect("it was asked");
    assert_eq!((sent.model.as_str(), sent.max_output_tokens), ("a", Some(2000)));
    setting.pins.request = Some("first/b".to_owned());
    setting.answered_by().await;
    let sent = setting.first.last.lock().clone().expect("it was asked");
    assert_eq!((sent.model.as_str(), sent.max_output_tokens), ("b", Some(50_000)));
}

#[tokio::test(start_paused = true)]
async fn who_hangs_has_its_other_models_asked_when_nobody_else_answers() {
    // Half of the time is over, so the second one's failure is not tried again.
    let setting = Setting::all(vec![Fault::Hang; 4], [Fault::BrokenServer], [Fault::NoCredit]);
    let answered = setting.ask().await.expect("an answer");
    let timeout = Some(ErrorClass::Timeout);
    let mut expected = vec![at("first/a", timeout); 4];
    expected.push(at("second/a", Some(ErrorClass::Server)));
    expected.push(at("third/a", Some(ErrorClass::Billing)));
    expected.push(at("first/b", None));
    assert_eq!(summary(&answered.attempts), expected);
}
