use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::ServiceExt as _;
use tower_test::mock;

use super::*;
use crate::answer::Answer;
use crate::sanitize::SanitizeLayer;
use crate::testing::{answer, call, sanitizer};

fn layer(max_bytes: usize) -> TruncateLayer {
    TruncateLayer::new(max_bytes, sanitizer())
}

/// Sanitized text cannot be made here, only had from the layer below.
fn truncated(layer: TruncateLayer, answer: Answer) -> Sanitized {
    let (inner, mut below) = mock::pair::<Call, Answer>();
    let mut service = layer.layer(SanitizeLayer::new(sanitizer()).layer(inner));
    assert_ready_ok!(task::spawn(service.ready()).poll());
    let mut waiting = task::spawn(service.call(call("1")));
    assert_pending!(waiting.poll());
    let Poll::Ready(Some((_, reply))) = below.poll_request() else { panic!("the call goes down") };
    reply.send_response(answer);
    assert_ready_ok!(waiting.poll())
}

#[test]
fn what_fits_exactly_is_left_alone() {
    let text = "x".repeat(100);
    let answer = truncated(layer(100), answer(&text, &text, ""));
    assert_eq!((answer.content(), answer.error()), (text.as_str(), text.as_str()));
    assert_eq!(answer.report().bytes_left_out, 0);
}

#[test]
fn the_cut_is_exact_and_the_notice_says_how_much_was_left_out() {
    let answer = truncated(layer(100), answer(&"x".repeat(250), "", ""));
    let expected =
        format!("{}\n[truncated: response exceeded size limit, 150 bytes left out]", "x".repeat(100));
    assert_eq!(answer.content(), expected);
    let report = answer.report();
    assert_eq!((report.bytes_in, report.bytes_out, report.bytes_left_out), (250, expected.len(), 150));
}

#[test]
fn an_error_is_bounded_likewise() {
    let answer = truncated(layer(10), answer("", &"e".repeat(30), ""));
    assert!(answer.error().starts_with("eeeeeeeeee\n[truncated"), "{}", answer.error());
    assert_eq!(answer.content(), "");
}

#[test]
fn characters_stay_whole() {
    let answer = truncated(layer(5), answer("abcdä", "", ""));
    assert!(answer.content().starts_with("abcd\n[truncated"), "{}", answer.content());
}

#[test]
fn structured_content_is_replaced_and_never_cut() {
    let json = format!("{{\"rows\":\"{}\"}}", "r".repeat(200));
    let answer = truncated(layer(100), answer("fine", "", &json));
    let notice: String = serde_json::from_str(answer.structured_content()).expect("still JSON");
    assert_eq!(
        notice,
        "truncated: structured content of 211 bytes exceeded the limit of 100 and was left out"
    );
    assert_eq!(answer.content(), "fine");
    assert_eq!(answer.report().bytes_left_out, 211);
}

#[test]
fn structured_content_may_have_a_limit_of_its_own() {
    let json = format!("{{\"rows\":\"{}\"}}", "r".repeat(200));
    let answer = truncated(layer(100).max_structured_bytes(1000), answer("", "", &json));
    assert_eq!(answer.structured_content(), json);
}

#[test]
fn the_notice_counts_what_the_coarse_cut_left_out() {
    let bytes = 2 * 1024 * 1024;
    let answer = truncated(layer(10), answer(&"x".repeat(bytes), "", &format!("\"{}\"", "s".repeat(bytes))));
    assert!(answer.content().ends_with(&format!(", {} bytes left out]", bytes - 10)), "{}", answer.content());
    assert_eq!(answer.report().bytes_left_out, bytes - 10 + bytes + 2);
    assert!(answer.structured_content().contains(&format!("content of {} bytes", bytes + 2)));
}

#[tokio::test]
async fn what_one_layer_announced_another_does_not() {
    let long = answer(&"x".repeat(1024 * 1024), "", "");
    let once = truncated(layer(10), long);
    let expected = once.content().to_owned();
    let (mut twice, mut below) = mock::spawn_layer::<Call, Sanitized, _>(layer(1000));
    below.allow(1);
    assert_ready_ok!(twice.poll_ready());
    let mut waiting = task::spawn(twice.call(call("1")));
    assert_pending!(waiting.poll());
    below.next_request().await.expect("the call goes down").1.send_response(once);
    assert_eq!(assert_ready_ok!(waiting.poll()).content(), expected);
}

#[test]
fn a_limit_of_zero_leaves_the_notice() {
    let answer = truncated(layer(0), answer("abc", "", ""));
    assert_eq!(answer.content(), "\n[truncated: response exceeded size limit, 3 bytes left out]");
}

#[test]
fn the_notices_are_no_control_syntax_themselves() {
    assert!(sanitizer().is_clean("\n[truncated: response exceeded size limit, 3 bytes left out]"));
    let answer = truncated(layer(4), answer("", "", "\"abc\""));
    assert!(answer.structured_content().contains("content of 5 bytes exceeded the limit of 4"));
    assert!(sanitizer().is_clean(answer.structured_content()));
}

#[test]
fn no_cut_leaves_a_token_that_sanitizing_had_made_inert() {
    let sanitizer = sanitizer();
    let text = "one [tool_call] two </function_call> three [/plugin_output] four";
    let whole = truncated(layer(1000), answer(text, "", ""));
    for max_bytes in 0..whole.content().len() {
        let cut = truncated(layer(max_bytes), answer(text, "", ""));
        assert!(sanitizer.is_clean(cut.content()), "{max_bytes}: {}", cut.content());
    }
}
