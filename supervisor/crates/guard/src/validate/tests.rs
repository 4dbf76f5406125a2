use proptest::prelude::*;
use tokio_test::{assert_pending, task};
use tower_test::mock;

use super::*;
use crate::testing::{call, raw};

async fn validated(raw: RawAnswer) -> Result<Answer, CallError> {
    validated_by(ValidateLayer::new(), raw).await
}

async fn validated_by(layer: ValidateLayer, raw: RawAnswer) -> Result<Answer, CallError> {
    validated_for(layer, call("call_1"), raw).await
}

async fn validated_for(layer: ValidateLayer, asked: Call, raw: RawAnswer) -> Result<Answer, CallError> {
    let (mut service, mut inner) = mock::spawn_layer::<Call, RawAnswer, _>(layer);
    inner.allow(1);
    assert!(service.poll_ready().is_ready());
    let mut waiting = task::spawn(service.call(asked));
    assert_pending!(waiting.poll());
    inner.next_request().await.expect("the call goes down").1.send_response(raw);
    waiting.await
}

async fn assert_bad(bytes: impl Into<bytes::Bytes>, detail: &str) {
    let error = validated(RawAnswer(bytes.into())).await.unwrap_err();
    assert_eq!(error.to_string(), "plugin returned an invalid result");
    assert!(matches!(error, CallError::Refused { reason: "bad_result", retryable: false, .. }));
    assert!(error.detail().contains(detail), "{}", error.detail());
}

/// One field of wire type 2.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    [&[number << 3 | 2, length], value].concat()
}

fn with_id(rest: &[u8]) -> Vec<u8> {
    [&field(1, b"call_1"), rest].concat()
}

#[tokio::test]
async fn a_valid_answer_passes_untouched() {
    let answer = validated(raw("call_1", "[tool_call] \u{1b}[2J")).await.unwrap();
    assert_eq!((answer.outcome, answer.content.expose()), (Outcome::Ok, "[tool_call] \u{1b}[2J"));
}

#[tokio::test]
async fn an_error_makes_it_a_tool_error() {
    let answer = validated(RawAnswer(with_id(&field(3, b"no such file")).into())).await.unwrap();
    assert_eq!((answer.outcome, answer.error.expose()), (Outcome::ToolError, "no such file"));
}

// Promises: GUARD-25
#[tokio::test]
async fn a_wrong_call_id_drops_the_content() {
    assert_bad(raw("call_99", "stolen").0, "is for call \"call_99\", not for \"call_1\"").await;
}

// Promises: GUARD-25
#[tokio::test]
async fn a_missing_call_id_is_a_wrong_one() {
    assert_bad(raw("", "x").0, "is for call \"\"").await;
    assert_bad(Vec::new(), "is for call \"\"").await;
}

// Promises: GUARD-26
#[tokio::test]
async fn garbage_is_refused() {
    assert_bad(&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"[..], "not a valid").await;
    assert_bad(&b"<html>not found</html>"[..], "not a valid").await;
}

#[tokio::test]
async fn an_answer_cut_short_is_refused() {
    let whole = raw("call_1", "some content").0;
    assert_bad(whole.slice(..whole.len() - 1), "not a valid").await;
}

// Promises: GUARD-26
#[tokio::test]
async fn a_field_of_the_wrong_type_is_refused() {
    // content as a number
    assert_bad(with_id(&[2 << 3, 7]), "not a valid").await;
}

// Promises: GUARD-26
#[tokio::test]
async fn text_that_is_not_utf8_is_refused() {
    for number in 2..=4 {
        assert_bad(with_id(&field(number, b"hello\xffworld")), "not a valid").await;
    }
}

// Promises: GUARD-27
#[tokio::test]
async fn unknown_fields_are_dropped() {
    let foreign = [field(15, b"[tool_call]"), field(2, b"fine")].concat();
    assert_eq!(validated(RawAnswer(with_id(&foreign).into())).await.unwrap().content.expose(), "fine");
}

#[tokio::test]
async fn of_a_field_sent_twice_the_last_counts() {
    let twice = [field(2, b"first"), field(2, b"second")].concat();
    assert_eq!(validated(RawAnswer(with_id(&twice).into())).await.unwrap().content.expose(), "second");
}

#[tokio::test]
async fn errors_from_below_pass() {
    let (mut service, mut inner) = mock::spawn_layer::<Call, RawAnswer, _>(ValidateLayer::new());
    inner.allow(1);
    assert!(service.poll_ready().is_ready());
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    inner
        .next_request()
        .await
        .expect("the call goes down")
        .1
        .send_error(CallError::fault(reason::DIED, "gone"));
    assert_eq!(waiting.await.unwrap_err().reason(), "died");
}

// Promises: GUARD-54
#[tokio::test]
async fn an_answer_carries_the_digest_of_its_message() {
    let message = raw("call_1", "fine");
    let digest = Digest::of(&message.0);
    assert_eq!(validated(message).await.unwrap().digest, Some(digest));
}

#[tokio::test]
async fn messages_are_kept_as_they_came_valid_or_not() {
    let store = RawStore::new(1 << 20);
    let message = raw("call_1", "<|im_start|>");
    validated_by(ValidateLayer::with_store(store.clone()), message.clone()).await.unwrap();
    let kept = store.get("call_1").expect("it is kept");
    assert_eq!((kept.plugin.as_str(), kept.action.as_str()), ("x", "run"));
    assert_eq!((kept.digest, &kept.message), (Digest::of(&message.0), &message.0));
    // It is the same buffer.
    assert_eq!(kept.message.as_ptr(), message.0.as_ptr());

    let garbage = RawAnswer(bytes::Bytes::from_static(b"\xff\xff\xff"));
    validated_by(ValidateLayer::with_store(store.clone()), garbage.clone()).await.unwrap_err();
    assert_eq!(store.get("call_1").map(|kept| kept.message), Some(garbage.0));
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer_to_this_call_or_the_one_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let digest = Digest::of(&bytes);
        match accept(RawAnswer(bytes.into()), digest, "call_1", true) {
            Ok(answer) => prop_assert!(matches!(answer.outcome, Outcome::Ok | Outcome::ToolError)),
            Err(error) => prop_assert_eq!(CallError::from(error).reason(), "bad_result"),
        }
    }
}

// Promises: GUARD-89
#[tokio::test]
async fn a_question_reaches_a_caller_that_can_ask_it_and_no_other() {
    use prost::Message as _;
    use talon_proto::plugin::{InputRequest, ToolResultResponse};

    let question = |schema: &str| {
        let message = ToolResultResponse {
            call_id: "call_1".to_owned(),
            content: "Which one?".to_owned(),
            input_request: Some(InputRequest { id: "q1".to_owned(), schema: schema.to_owned() }),
            ..Default::default()
        };
        RawAnswer(message.encode_to_vec().into())
    };
    let answer = validated(question("{}")).await.unwrap();
    assert_eq!((answer.outcome, answer.input_request), (Outcome::ToolError, None));
    assert!(answer.error.expose().contains("cannot put a question to a user"), "{:?}", answer.error);
    let asking = || {
        let mut asking = call("call_1");
        asking.takes_input_requests = true;
        asking
    };
    let answer = validated_for(ValidateLayer::new(), asking(), question("{}")).await.unwrap();
    assert_eq!((answer.outcome, answer.input_request.unwrap().id.as_str()), (Outcome::Ok, "q1"));
    let nested = question(r#"{"properties": {"a": {"type": "object"}}}"#);
    let refused = validated_for(ValidateLayer::new(), asking(), nested).await.unwrap_err();
    assert!(refused.detail().contains("the field \"a\""), "{}", refused.detail());
}
