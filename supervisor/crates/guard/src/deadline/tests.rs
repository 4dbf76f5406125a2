use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower_test::mock;

use super::*;
use crate::admission::{AdmissionLayer, AdmissionSettings};
use crate::answer::RawAnswer;
use crate::testing::{call, raw};

fn seconds(seconds: u64) -> Timeouts {
    Timeouts { default: Duration::from_secs(seconds), ..Timeouts::default() }
}

// Promises: GUARD-4
#[tokio::test(start_paused = true)]
async fn names_plugin_and_timeout() {
    let (mut service, mut plugin) =
        mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(Timeouts::default()));
    plugin.allow(1);
    let started = Instant::now();
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    let (sent, _reply) = plugin.next_request().await.expect("the call goes down");
    assert_eq!(sent.deadline, Some(started + Duration::from_secs(30)));

    tokio::time::advance(Duration::from_secs(29)).await;
    assert_pending!(waiting.poll());
    tokio::time::advance(Duration::from_secs(1)).await;
    let error = assert_ready_err!(waiting.poll());
    assert_eq!(error.to_string(), "plugin \"x\" timed out after 30s");
    assert!(matches!(error, CallError::Fault { reason: "timed_out", retryable: true, .. }));
}

#[tokio::test(start_paused = true)]
async fn the_inner_future_is_gone_while_the_outer_one_is_still_held() {
    let alive = std::sync::Arc::new(());
    let held = alive.clone();
    // Dropping this future is what resets the stream on the wire.
    let plugin = tower::service_fn(move |_: Call| {
        let held = held.clone();
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok::<_, std::convert::Infallible>(())
        }
    });
    let mut service = DeadlineLayer::new(seconds(1)).layer(plugin);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    // Ours, the service's, its clone's inside the future, and the pending call's.
    let before = std::sync::Arc::strong_count(&alive);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_ready_err!(waiting.poll());
    assert!(std::sync::Arc::strong_count(&alive) < before);
    assert_eq!(std::sync::Arc::strong_count(&alive), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_passes() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    let (_, reply) = plugin.next_request().await.expect("the call goes down");
    tokio::time::advance(Duration::from_millis(10)).await;
    reply.send_response(raw("1", "done"));
    assert_eq!(assert_ready_ok!(waiting.poll()), raw("1", "done"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_meets_the_deadline_wins() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    plugin.next_request().await.expect("the call goes down").1.send_response(raw("1", "done"));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_ready_ok!(waiting.poll());
}

// Promises: GUARD-6
#[tokio::test(start_paused = true)]
async fn waiting_for_the_inner_service_counts() {
    // Nothing is allowed: the mock never becomes ready.
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(0);
    assert_ready_ok!(service.poll_ready());
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(assert_ready_err!(waiting.poll()).to_string(), "plugin \"x\" timed out after 2s");
}

// Promises: GUARD-3
#[test]
fn the_action_overrides_and_the_caller_only_shortens() {
    let timeouts = Timeouts {
        default: Duration::from_secs(30),
        actions: [("run".to_owned(), Duration::from_secs(60)), ("quick".to_owned(), Duration::from_secs(1))]
            .into(),
    };
    let of = |action: &str, wish: Option<u64>| {
        let mut call = call("1");
        call.action = action.to_owned();
        call.timeout = wish.map(Duration::from_secs);
        timeouts.timeout_of(&call).as_secs()
    };
    assert_eq!(of("other", None), 30);
    assert_eq!(of("run", None), 60);
    assert_eq!(of("quick", None), 1);
    assert_eq!(of("run", Some(5)), 5);
    assert_eq!(of("run", Some(500)), 60);
}

#[tokio::test(start_paused = true)]
async fn absurd_timeouts_neither_panic_nor_last() {
    let endless = Timeouts { default: Duration::MAX, ..Timeouts::default() };
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(endless));
    plugin.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    let (sent, _reply) = plugin.next_request().await.expect("the call goes down");
    assert_eq!(sent.deadline, Some(Instant::now() + MAX_TIMEOUT));
}

#[tokio::test(start_paused = true)]
async fn without_any_time_the_plugin_is_not_asked() {
    let (mut service, mut plugin) =
        mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(Timeouts::default()));
    plugin.allow(1);
    let mut hurried = call("1");
    hurried.timeout = Some(Duration::ZERO);
    assert_eq!(service.call(hurried).await.unwrap_err().reason(), "timed_out");
    assert_pending!(plugin.poll_request());
}

#[tokio::test(start_paused = true)]
async fn waiting_above_counts_and_the_text_names_the_whole_timeout() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(1);
    let waited = call("1");
    tokio::time::advance(Duration::from_millis(1500)).await;
    let mut waiting = task::spawn(service.call(waited));
    assert_pending!(waiting.poll());
    let (sent, _reply) = plugin.next_request().await.expect("the call goes down");
    assert_eq!(sent.deadline, Some(Instant::now() + Duration::from_millis(500)));
    tokio::time::advance(Duration::from_millis(500)).await;
    assert_eq!(assert_ready_err!(waiting.poll()).to_string(), "plugin \"x\" timed out after 2s");
}

#[tokio::test(start_paused = true)]
async fn only_a_wish_that_shortens_the_call_travels_on() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(3);
    for (wish, travels) in [(1, true), (2, false), (3, false)] {
        let wish = Some(Duration::from_secs(wish));
        let mut call = call("1");
        call.timeout = wish;
        let mut waiting = task::spawn(service.call(call));
        assert_pending!(waiting.poll());
        let (sent, _reply) = plugin.next_request().await.expect("the call goes down");
        assert_eq!(sent.timeout, wish.filter(|_| travels));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_notices_first_is_given_the_same_text() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    let (_, reply) = plugin.next_request().await.expect("the call goes down");
    let below = CallError::fault(reason::TIMED_OUT, "grpc: deadline exceeded").with_retryable(false);
    reply.send_error(below);
    let error = assert_ready_err!(waiting.poll());
    assert_eq!(error.to_string(), "plugin \"x\" timed out after 2s");
    assert!(!error.outcome().is_retryable(), "who noticed knows whether a retry can help");
    assert!(error.detail().ends_with(": grpc: deadline exceeded"), "{}", error.detail());
}

// Promises: GUARD-74
#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_taken_effect_says_so_when_it_is_late() {
    let (mut service, mut plugin) = mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(seconds(2)));
    plugin.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    let (_, reply) = plugin.next_request().await.expect("the call goes down");
    reply.send_error(CallError::fault(reason::TIMED_OUT, "no answer").with_unknown_effect());
    let error = assert_ready_err!(waiting.poll());
    let text = "plugin \"x\" timed out after 2s; whether the action took effect is not known";
    assert_eq!(error.to_string(), text);
    assert!(!error.outcome().is_retryable() && error.is_effect_unknown());
}

#[tokio::test(start_paused = true)]
async fn an_earlier_deadline_from_above_holds() {
    let (mut service, mut plugin) =
        mock::spawn_layer::<Call, RawAnswer, _>(DeadlineLayer::new(Timeouts::default()));
    plugin.allow(1);
    let mut call = call("1");
    call.deadline = Some(Instant::now() + Duration::from_secs(4));
    let error = service.call(call).await.unwrap_err();
    assert_eq!(error.to_string(), "plugin \"x\" timed out after 4s");
}

/// Both layers sleep until the same instant; the one that knows why the time ran out has to win.
#[tokio::test(start_paused = true)]
async fn time_spent_in_the_queue_is_overload_and_no_fault() {
    let (plugin, mut handle) = mock::pair::<Call, RawAnswer>();
    handle.allow(1);
    let admission = AdmissionLayer::new(AdmissionSettings { concurrency: 1, queue: 1 });
    let mut service = DeadlineLayer::new(seconds(2)).layer(admission.layer(plugin));
    let mut running = task::spawn(service.call(call("1")));
    assert_pending!(running.poll());
    let mut waiting = task::spawn(service.call(call("2")));
    assert_pending!(waiting.poll());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(assert_ready_err!(waiting.poll()).reason(), "overloaded");
    assert_eq!(assert_ready_err!(running.poll()).reason(), "timed_out");
}
