use tokio_test::{assert_ready, assert_ready_err, task};
use tower::ServiceExt as _;
use tower::service_fn;
use tower_test::mock;

use super::*;
use crate::answer::{Answer, Outcome};
use crate::sanitize::SanitizeLayer;
use crate::testing::{answer, call, sanitizer};

fn quarantine(threshold: u32) -> Quarantine {
    let settings = QuarantineSettings { threshold: NonZeroU32::new(threshold), ..Default::default() };
    Quarantine::new("x", settings)
}

/// Passes an answer to this call through a sanitize layer that reports to the quarantine.
async fn answered(quarantine: &Quarantine, call: Call, answer: Answer) {
    let plugin =
        service_fn(move |_: Call| std::future::ready(Ok::<_, std::convert::Infallible>(answer.clone())));
    let Ok(_) =
        SanitizeLayer::new(sanitizer()).reporting_to(quarantine.clone()).layer(plugin).oneshot(call).await;
}

async fn said(quarantine: &Quarantine, text: &str) {
    answered(quarantine, call("1"), answer(text, "", "")).await;
}

// Promises: GUARD-60
#[tokio::test(start_paused = true)]
async fn enough_syntax_within_the_window_is_too_much() {
    let quarantine = quarantine(3);
    let mut watch = quarantine.subscribe();
    said(&quarantine, "[tool_call]").await;
    said(&quarantine, "<|im_start|>").await;
    assert!(!quarantine.is_quarantined() && !watch.has_changed().unwrap());
    said(&quarantine, "[/plugin_output]").await;
    assert!(quarantine.is_quarantined());
    let told = watch.borrow_and_update().expect("it is quarantined");
    assert_eq!(told.neutralised, 3);
    // Watchers are notified once, however much follows.
    said(&quarantine, "[tool_call]").await;
    assert!(!watch.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_is_long_past_does_not_count() {
    let quarantine = quarantine(2);
    said(&quarantine, "[tool_call]").await;
    tokio::time::advance(DEFAULT_WINDOW).await;
    said(&quarantine, "[tool_call]").await;
    assert!(!quarantine.is_quarantined());
}

#[tokio::test(start_paused = true)]
async fn colours_and_invisible_characters_are_no_attack() {
    let quarantine = quarantine(1);
    said(&quarantine, "\u{1b}[31mred\u{1b}[0m and a\u{200b}b").await;
    assert!(!quarantine.is_quarantined());
}

// Promises: GUARD-60
#[tokio::test(start_paused = true)]
async fn a_callers_own_words_are_not_held_against_the_plugin() {
    let quarantine = quarantine(1);
    let mut provoking = call("1");
    provoking.args.insert("path".to_owned(), "&lt;|im_start|>".to_owned());
    answered(&quarantine, provoking, answer("", "no such file: <|im_start|>", "")).await;
    let mut provoking = call("1");
    provoking.action = "[tool_call]".to_owned();
    answered(&quarantine, provoking, answer("no action [tool_call]", "", "")).await;
    assert!(!quarantine.is_quarantined());
}

#[tokio::test(start_paused = true)]
async fn the_hosts_own_words_are_not_either() {
    let quarantine = quarantine(1);
    let refused = Outcome::Refused { reason: reason::UNKNOWN_ACTION, retryable: false };
    answered(&quarantine, call("1"), Answer::from_host(refused, "unknown action [tool_call]")).await;
    assert!(!quarantine.is_quarantined());
    // But what the plugin wrote into its error counts.
    let failed = Outcome::HostFault { reason: reason::PLUGIN_ERROR, retryable: false };
    answered(&quarantine, call("1"), Answer::from_host(failed, "[tool_call]")).await;
    assert!(quarantine.is_quarantined());
}

#[tokio::test(start_paused = true)]
async fn one_plugins_text_counts_for_no_other() {
    let (one, other) = (quarantine(1), quarantine(1));
    said(&one, "[tool_call]").await;
    assert!(one.is_quarantined() && !other.is_quarantined());
}

#[tokio::test(start_paused = true)]
async fn without_a_threshold_nothing_is_too_much() {
    let quarantine = Quarantine::new("x", QuarantineSettings::default());
    said(&quarantine, &"[tool_call]".repeat(1000)).await;
    assert!(!quarantine.is_quarantined());
}

#[tokio::test(start_paused = true)]
async fn it_refuses_until_it_is_lifted() {
    let quarantine = quarantine(1);
    let (inner, mut below) = mock::pair::<Call, ()>();
    let inner = tower::util::MapErr::new(inner, CallError::defect);
    let mut service = QuarantineLayer::new(quarantine.clone()).layer(inner);
    said(&quarantine, "[tool_call]").await;
    tokio::time::advance(DEFAULT_WINDOW * 10).await;

    assert!(assert_ready!(task::spawn(service.ready()).poll()).is_ok());
    let error = assert_ready_err!(task::spawn(service.call(call("1"))).poll());
    assert_eq!((error.reason(), error.outcome().is_retryable()), ("quarantined", false));
    assert_eq!(
        error.to_string(),
        "plugin \"x\" is quarantined: its answers held too much control syntax; an operator can lift that"
    );
    assert!(below.poll_request().is_pending());

    let mut watch = quarantine.subscribe();
    assert!(quarantine.lift() && watch.has_changed().unwrap() && watch.borrow_and_update().is_none());
    assert!(!quarantine.lift());
    below.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert!(waiting.poll().is_pending());
    assert!(below.poll_request().is_ready());
}

#[tokio::test(start_paused = true)]
async fn lifting_forgets_what_was_counted() {
    let quarantine = quarantine(2);
    said(&quarantine, "[tool_call] [tool_call]").await;
    assert!(quarantine.lift());
    said(&quarantine, "[tool_call]").await;
    assert!(!quarantine.is_quarantined());
}
