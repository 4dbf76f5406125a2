//! Who is left alone, and how they come back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::provider::Fault;
use super::setting::Setting;
use crate::model::ErrorClass;
use crate::route::breaker::BreakerSettings;
use crate::route::catalog::ModelRef;
use crate::route::cost::Budget;
use crate::route::fallback::health::Health;
use crate::route::fallback::{Chain, ChainSettings, ProviderState};
use crate::route::retry::RetrySettings;
use crate::route::router::{Availability, Outage};
use crate::route::show::rows;

/// The network to the first provider is dead for so many requests, with all their retries.
fn dead(requests: usize) -> Vec<Fault> {
    vec![Fault::DeadNetwork; requests * 4]
}

async fn run_probes(setting: &Setting) -> usize {
    let due = setting.chain.due_probes(Instant::now());
    let count = due.len();
    for probe in due {
        probe.run().await;
    }
    count
}

#[tokio::test(start_paused = true)]
async fn a_dead_provider_is_left_alone_after_three_requests() {
    let setting = Setting::first(dead(3));
    for _ in 0..3 {
        assert_eq!(setting.answered_by().await, "second/a");
    }
    assert!(setting.events().contains(&"first Closed to Open".to_owned()));
    assert_eq!(setting.times_asked(), [12, 3, 0]);
    let answered = setting.ask().await.expect("an answer");
    assert_eq!((answered.attempts.len(), answered.total_latency_ms), (1, 0));
    assert_eq!(setting.times_asked(), [12, 4, 0]);
    let state = setting.chain.provider_state("first", Instant::now());
    let retry_in = Duration::from_secs(60);
    assert_eq!(state, ProviderState::Out { outage: Outage::Failing { retry_in } });
    assert_eq!(
        serde_json::to_value(&state).expect("data"),
        serde_json::json!({ "state": "out", "reason": "failing", "retry_in_ms": 60_000 })
    );
}

#[tokio::test(start_paused = true)]
async fn probes_bring_the_primary_back_and_one_is_not_enough() {
    let setting = Setting::first(dead(3));
    for _ in 0..3 {
        setting.answered_by().await;
    }
    assert_eq!(setting.chain.next_probe(), Some(Instant::now() + Duration::from_secs(60)));
    assert_eq!(run_probes(&setting).await, 0);
    advance(Duration::from_secs(60)).await;
    setting.events();
    assert_eq!(run_probes(&setting).await, 1);
    assert_eq!(setting.events(), ["first Open to HalfOpen", "probed first None"]);
    // On its way back it is not the primary yet, and the probe cost nothing.
    assert_eq!(setting.chain.provider_state("first", Instant::now()), ProviderState::Recovering);
    assert_eq!(setting.answered_by().await, "second/a");
    assert_eq!(setting.times_asked(), [12, 4, 0]);
    assert_eq!(run_probes(&setting).await, 0);
    advance(Duration::from_secs(5)).await;
    setting.events();
    assert_eq!(run_probes(&setting).await, 1);
    assert_eq!(setting.events(), ["probed first None", "first HalfOpen to Closed"]);
    assert_eq!(setting.chain.next_probe(), None);
    assert_eq!(setting.answered_by().await, "first/a");
    assert_eq!(setting.first.probed.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_or_hangs_keeps_it_out_for_longer() {
    let mut faults = dead(3);
    faults.extend([Fault::DeadNetwork, Fault::Hang]);
    let setting = Setting::first(faults);
    for _ in 0..3 {
        setting.answered_by().await;
    }
    advance(Duration::from_secs(60)).await;
    assert_eq!(run_probes(&setting).await, 1);
    assert_eq!(setting.chain.next_probe(), Some(Instant::now() + Duration::from_secs(120)));
    advance(Duration::from_secs(120)).await;
    assert_eq!(run_probes(&setting).await, 1);
    assert_eq!(setting.chain.next_probe(), Some(Instant::now() + Duration::from_secs(240)));
    assert!(setting.events().contains(&"probed first Some(\"timeout\")".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_is_due_again() {
    let setting = Setting::first(dead(3));
    for _ in 0..3 {
        setting.answered_by().await;
    }
    advance(Duration::from_secs(60)).await;
    let due = setting.chain.due_probes(Instant::now());
    assert_eq!(due.len(), 1);
    assert!(setting.chain.due_probes(Instant::now()).is_empty());
    drop(due);
    advance(Duration::from_secs(5)).await;
    assert_eq!(run_probes(&setting).await, 1);
}

#[tokio::test(start_paused = true)]
async fn who_recovers_is_tried_by_a_request_if_nobody_else_can_be_asked() {
    let mut setting = Setting::first(dead(3));
    for _ in 0..3 {
        setting.answered_by().await;
    }
    setting.pins.session = Some("first/a".to_owned());
    let error = setting.ask().await.expect_err("it is left alone");
    assert!(error.to_string().contains("failed again and again and is left alone for 60 s"), "{error}");
    assert_eq!(setting.times_asked(), [12, 3, 0]);
    advance(Duration::from_secs(60)).await;
    assert_eq!(setting.answered_by().await, "first/a");
    assert_eq!(setting.answered_by().await, "first/a");
    assert!(setting.events().contains(&"first HalfOpen to Closed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_fails_is_not_repeated() {
    let mut setting = Setting::first(dead(4));
    for _ in 0..3 {
        setting.answered_by().await;
    }
    setting.pins.session = Some("first/a".to_owned());
    advance(Duration::from_secs(60)).await;
    assert_eq!(setting.ask().await.expect_err("it is still dead").attempts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_request_at_a_time_tries_who_recovers() {
    let mut faults = dead(3);
    faults.push(Fault::Slow(1, 10));
    let mut setting = Setting::first(faults);
    for _ in 0..3 {
        setting.answered_by().await;
    }
    setting.pins.session = Some("first/a".to_owned());
    advance(Duration::from_secs(60)).await;
    let (first, second) = tokio::join!(setting.ask(), setting.ask());
    assert!(first.is_ok());
    let error = second.expect_err("the first one is trying").to_string();
    assert_eq!(error, "no model answered: first/a failed again and again and is just being tried again");
}

#[tokio::test(start_paused = true)]
async fn refusals_open_no_breaker() {
    let mut setting = Setting::first(vec![Fault::WrongKey; 9]);
    for _ in 0..9 {
        setting.ask().await.expect_err("the key is wrong");
    }
    assert_eq!(setting.chain.provider_state("first", Instant::now()), ProviderState::Ready);
    setting.pins.session = Some("first/a".to_owned());
    assert_eq!(setting.answered_by().await, "first/a");
}

// Promises: AGENT-63
#[tokio::test(start_paused = true)]
async fn a_provider_without_a_key_that_holds_is_shown_and_passed_over_until_it_is_set_up_anew() {
    let setting = Setting::first([Fault::WrongKey]);
    // The first question says so, for another provider would hide it.
    setting.ask().await.expect_err("the key is wrong");
    setting.first.refuses.store(true, Ordering::Relaxed);
    let state = setting.chain.provider_state("first", Instant::now());
    let ProviderState::Out { outage: Outage::NotSetUp { what } } = state else { panic!("{state:?}") };
    assert!(what.starts_with("all its keys were refused"), "{what}");
    assert_eq!(setting.answered_by().await, "second/a");
    assert_eq!(setting.times_asked(), [1, 1, 0]);
    // A configuration that is read again has providers of its own.
    setting.first.refuses.store(false, Ordering::Relaxed);
    assert_eq!(setting.answered_by().await, "first/a");
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_keeps_what_is_known() {
    let setting = Setting::first(dead(3));
    for _ in 0..3 {
        setting.answered_by().await;
    }
    let chain = &setting.chain;
    let catalog = Arc::new(chain.catalog().clone());
    let settings = ChainSettings::default();
    let first: Arc<dyn crate::provider::Provider> = setting.first.clone();
    let renewed = chain.renewed(catalog, [first], chain.ledgers().clone(), settings);
    let state = |name| renewed.provider_state(name, Instant::now());
    assert!(matches!(state("first"), ProviderState::Out { outage: Outage::Failing { .. } }));
    assert!(matches!(state("second"), ProviderState::Out { outage: Outage::NotSetUp { .. } }));
    assert_eq!(renewed.ledgers().lock().total().answers, 3);
}

// Promises: AGENT-68
#[tokio::test(start_paused = true)]
async fn a_changed_configuration_forgets_what_was_learned_of_a_key() {
    let setting = Setting::first([Fault::NoCredit]);
    setting.answered_by().await;
    let chain = &setting.chain;
    let state = |chain: &Chain| chain.provider_state("first", Instant::now());
    assert!(matches!(state(chain), ProviderState::Out { outage: Outage::NoCredit { .. } }));
    let first: Arc<dyn crate::provider::Provider> = setting.first.clone();
    let catalog = Arc::new(chain.catalog().clone());
    let renewed = chain.renewed(catalog, [first], chain.ledgers().clone(), ChainSettings::default());
    assert_eq!(state(&renewed), ProviderState::Ready);
}

#[tokio::test(start_paused = true)]
async fn the_list_of_models_shows_prices_and_who_can_be_asked() {
    let mut setting = Setting::first([Fault::RateLimited(Some(60))]);
    setting.answered_by().await;
    setting.chain = setting.chain.without("third", "set THIRD_API_KEY");
    let rows = rows(&setting.chain, Instant::now());
    let models: Vec<String> = rows.iter().map(|row| format!("{} {}", row.model, row.typical_turn)).collect();
    assert_eq!(models, ["first/a 0.011", "first/b 0.017", "second/a 0.023", "third/a 0.029"]);
    let states: Vec<_> = rows.iter().map(|row| serde_json::to_value(&row.provider).expect("data")).collect();
    assert_eq!(
        states,
        [
            serde_json::json!({ "state": "out", "reason": "rate_limited", "retry_in_ms": 60_000 }),
            serde_json::json!({ "state": "ready" }),
            serde_json::json!({ "state": "ready" }),
            serde_json::json!({ "state": "out", "reason": "not_set_up", "what": "set THIRD_API_KEY" }),
        ]
    );
    let row = serde_json::to_value(&rows[0]).expect("data");
    assert_eq!(
        (&row["model"], &row["tier"], &row["input"]),
        (&"first/a".into(), &"cheap".into(), &"1.00".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_its_retry_hears_of_an_open_breaker() {
    let breaker = BreakerSettings { failures: 1, ..BreakerSettings::default() };
    let retry = RetrySettings { retries: 1, ..RetrySettings::default() };
    let settings = ChainSettings { breaker, retry, ..ChainSettings::default() };
    let faults = [Fault::DeadNetwork, Fault::BrokenServer, Fault::BrokenServer];
    let setting = Setting::with(faults, [], [], settings, Budget::default());
    // The second one waits for its retry when the first one's fails.
    let later = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        setting.ask().await
    };
    let (first, waiting) = tokio::join!(setting.ask(), later);
    assert_eq!(first.expect("an answer").attempts.len(), 3);
    assert_eq!(waiting.expect("an answer").attempts.len(), 2);
    assert_eq!(setting.times_asked(), [3, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_ends_no_rest() {
    let setting = Setting::first([Fault::Slow(1, 10), Fault::RateLimited(Some(120))]);
    let (slow, limited) = tokio::join!(setting.ask(), setting.ask());
    assert_eq!(slow.expect("an answer").model.to_string(), "first/a");
    assert_eq!(limited.expect("an answer").model.to_string(), "first/b");
    assert_eq!(setting.answered_by().await, "first/b");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_rest_does_not_end_a_longer_one() {
    let health = Health::new(BreakerSettings::default(), Arc::new(()));
    let model: ModelRef = "first/a".parse().expect("a model");
    for seconds in [120, 1] {
        health.rest("first", Some("a"), ErrorClass::RateLimit, Duration::from_secs(seconds));
    }
    let retry_in = Duration::from_secs(120);
    assert_eq!(
        health.availability(&model, Instant::now()),
        Availability::Out(Outage::RateLimited { retry_in })
    );
}
