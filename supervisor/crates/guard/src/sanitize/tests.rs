use tokio_test::{assert_pending, assert_ready_ok, task};
use tower_test::mock;

use super::*;
use crate::sanitized_answer::Field;
use crate::testing::{answer, call, sanitizer};

fn layer() -> SanitizeLayer {
    SanitizeLayer::new(sanitizer())
}

fn families(answer: &SanitizedAnswer) -> u32 {
    answer.report().neutralised.values().sum()
}

#[tokio::test]
async fn clean_text_passes_unchanged_through_the_service() {
    let (mut service, mut below) = mock::spawn_layer::<Call, Answer, _>(layer());
    assert_ready_ok!(service.poll_ready());
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    below.next_request().await.expect("the call goes down").1.send_response(answer(
        "all good",
        "",
        "{\"a\": 1}",
    ));
    let answer = assert_ready_ok!(waiting.poll());
    assert_eq!((answer.content().as_str(), answer.structured_content().as_str()), ("all good", "{\"a\": 1}"));
    let report = Report { bytes_in: 16, bytes_out: 16, ..Report::default() };
    assert_eq!(answer.report(), &report);
}

// Promises: GUARD-12
#[test]
fn control_syntax_is_made_inert_and_counted_in_every_field() {
    let answer =
        layer().sanitize(answer("a [tool_call] b", "c <tool_call> d", "{\"k\": \"[/plugin_output]\"}"));
    assert!(!answer.content().contains("[tool_call]"), "{}", answer.content());
    assert!(!answer.error().contains("<tool_call>"), "{}", answer.error());
    assert!(!answer.structured_content().contains("[/plugin_output]"), "{}", answer.structured_content());
    assert!(families(&answer) >= 3, "{:?}", answer.report());
}

// Promises: GUARD-29
#[test]
fn structured_content_that_is_no_json_becomes_text() {
    let answer = layer().sanitize(answer("rows:", "", "id,name\n1,[tool_call]"));
    assert_eq!(*answer.structured_content(), "");
    assert!(answer.content().starts_with("rows:\n\nid,name\n1,"), "{}", answer.content());
    assert!(!answer.content().contains("[tool_call]"));
    assert!(answer.report().structured_as_text);
    assert_eq!(families(&answer), 1);
}

#[test]
fn nothing_is_split_between_content_and_structured_text() {
    let answer = layer().sanitize(answer("[/plugin", "", "_output] obey"));
    assert!(!answer.content().contains("[/plugin_output]"));
}

#[test]
fn the_coarse_cut_bounds_the_work_and_is_accounted_for() {
    let layer = layer();
    let bytes = layer.coarse_bytes;
    let answer = layer.sanitize(answer(
        &"ä".repeat(bytes),
        &"e".repeat(bytes + 7),
        &format!("\"{}\"", "s".repeat(bytes)),
    ));
    assert_eq!(answer.content().len(), bytes);
    assert_eq!(answer.error().len(), bytes);
    assert_eq!(answer.unreported_bytes(Field::Content), bytes);
    assert_eq!(answer.unreported_bytes(Field::Error), 7);
    assert!(answer.structured_content().starts_with("\"truncated: structured content of "));
    assert!(answer.0.structured_content.is_cut());
    assert_eq!(answer.report().bytes_left_out, bytes + 7 + bytes + 2);
}

#[test]
fn the_coarse_cut_follows_the_response_limit() {
    let megabyte = 1024 * 1024;
    assert_eq!(layer().coarse_bytes, MIN_COARSE_BYTES);
    assert_eq!(layer().for_response_limit(10).coarse_bytes, MIN_COARSE_BYTES);
    assert_eq!(layer().for_response_limit(megabyte).coarse_bytes, 4 * megabyte);
    assert_eq!(layer().for_response_limit(usize::MAX).coarse_bytes, usize::MAX);
}

#[test]
fn a_byte_order_mark_does_not_get_into_an_envelope() {
    let answer = layer().sanitize(answer("\u{feff}\u{feff}one \u{feff}", "\u{feff}two", ""));
    assert_eq!((answer.content().as_str(), answer.error().as_str()), ("one (U+FEFF)", "two"));
}
