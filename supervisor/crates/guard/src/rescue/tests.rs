use tokio_test::{assert_pending, assert_ready_ok, task};
use tower_test::mock;

use super::*;
use crate::answer::Outcome;
use crate::reason;
use crate::testing::{answer as answered, call};

async fn rescued(error: CallError) -> Answer {
    let (mut service, mut inner) = mock::spawn_layer::<Call, Answer, _>(RescueLayer::new());
    inner.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    inner.next_request().await.expect("the call goes down").1.send_error(error);
    assert_ready_ok!(waiting.poll())
}

#[tokio::test]
async fn an_answer_passes() {
    let (mut service, mut inner) = mock::spawn_layer::<Call, Answer, _>(RescueLayer::new());
    inner.allow(1);
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    inner.next_request().await.expect("the call goes down").1.send_response(answered("fine", "", ""));
    assert_eq!(assert_ready_ok!(waiting.poll()), answered("fine", "", ""));
}

// Promises: GUARD-45
#[tokio::test]
async fn every_kind_of_error_becomes_a_result() {
    let refusal = rescued(CallError::refused(reason::USER_ONLY, "not for you")).await;
    assert_eq!(refusal.outcome, Outcome::Refused { reason: "user_only", retryable: false });
    assert_eq!((refusal.error.expose(), refusal.content.expose()), ("not for you", ""));

    let fault = rescued(CallError::fault(reason::DIED, "it died").caused_by("signal 11")).await;
    assert_eq!(fault.outcome, Outcome::HostFault { reason: "died", retryable: true });
    assert_eq!(fault.error.expose(), "it died");

    let defect = rescued(CallError::defect("secret path /etc/x")).await;
    assert_eq!(defect.outcome, Outcome::HostFault { reason: "internal", retryable: false });
    assert_eq!(defect.error.expose(), "internal error");
}

#[tokio::test]
async fn an_error_without_a_text_does_not_look_like_success() {
    assert_eq!(rescued(CallError::fault(reason::DIED, "")).await.error.expose(), "the call failed (died)");
}

#[tokio::test]
async fn a_service_that_fails_to_become_ready_is_rescued_too() {
    let (mut service, mut inner) = mock::spawn_layer::<Call, Answer, _>(RescueLayer::new());
    inner.send_error(CallError::fault(reason::UNAVAILABLE, "not there"));
    assert_ready_ok!(service.poll_ready());
    assert_eq!(service.call(call("1")).await.unwrap().error.expose(), "not there");
}
