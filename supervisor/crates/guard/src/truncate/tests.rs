use proptest::prelude::*;
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::ServiceExt as _;
use tower_test::mock;

use super::*;
use crate::answer::{Answer, Outcome};
use crate::sanitize::SanitizeLayer;
use crate::testing::{answer, call, hostile, sanitizer};

fn layer(max_bytes: usize) -> TruncateLayer {
    TruncateLayer::new(max_bytes, sanitizer())
}

/// Sanitized text cannot be made here, only had from the layer below.
fn truncated(layer: TruncateLayer, answer: Answer) -> SanitizedAnswer {
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
    assert_eq!((answer.content().as_str(), answer.error().as_str()), (text.as_str(), text.as_str()));
    assert_eq!(answer.report().bytes_left_out, 0);
}

// Promises: GUARD-7
#[test]
fn the_cut_is_exact_and_the_notice_says_how_much_was_left_out() {
    let answer = truncated(layer(100), answer(&"x".repeat(250), "", ""));
    let expected =
        format!("{}\n[truncated: response exceeded size limit, 150 bytes left out]", "x".repeat(100));
    assert_eq!(*answer.content(), *expected);
    let report = answer.report();
    assert_eq!((report.bytes_in, report.bytes_out, report.bytes_left_out), (250, expected.len(), 150));
}

// Promises: GUARD-7
#[test]
fn an_error_is_bounded_likewise() {
    let answer = truncated(layer(10), answer("", &"e".repeat(30), ""));
    assert!(answer.error().starts_with("eeeeeeeeee\n[truncated"), "{}", answer.error());
    assert_eq!(*answer.content(), "");
}

// Promises: GUARD-7
#[test]
fn characters_stay_whole() {
    let answer = truncated(layer(5), answer("abcdä", "", ""));
    assert!(answer.content().starts_with("abcd\n[truncated"), "{}", answer.content());
}

// Promises: GUARD-9
#[test]
fn structured_content_is_replaced_and_never_cut() {
    let json = format!("{{\"rows\":\"{}\"}}", "r".repeat(200));
    let answer = truncated(layer(100), answer("fine", "", &json));
    let notice: String = serde_json::from_str(answer.structured_content()).expect("still JSON");
    assert_eq!(
        notice,
        "truncated: structured content of 211 bytes exceeded the limit of 100 and was left out"
    );
    assert_eq!(*answer.content(), "fine");
    assert_eq!(answer.report().bytes_left_out, 211);
}

#[test]
fn structured_content_may_have_a_limit_of_its_own() {
    let json = format!("{{\"rows\":\"{}\"}}", "r".repeat(200));
    let answer = truncated(layer(100).max_structured_bytes(1000), answer("", "", &json));
    assert_eq!(*answer.structured_content(), *json);
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
    let expected = once.content().clone();
    let (mut twice, mut below) = mock::spawn_layer::<Call, SanitizedAnswer, _>(layer(1000));
    below.allow(1);
    assert_ready_ok!(twice.poll_ready());
    let mut waiting = task::spawn(twice.call(call("1")));
    assert_pending!(waiting.poll());
    below.next_request().await.expect("the call goes down").1.send_response(once);
    assert_eq!(assert_ready_ok!(waiting.poll()).content(), &expected);
}

#[test]
fn a_limit_of_zero_leaves_the_notice() {
    let answer = truncated(layer(0), answer("abc", "", ""));
    assert_eq!(*answer.content(), "\n[truncated: response exceeded size limit, 3 bytes left out]");
}

#[test]
fn the_notices_are_no_control_syntax_themselves() {
    assert!(sanitizer().is_clean("\n[truncated: response exceeded size limit, 3 bytes left out]"));
    let answer = truncated(layer(4), answer("", "", "\"abc\""));
    assert!(answer.structured_content().contains("content of 5 bytes exceeded the limit of 4"));
    assert!(sanitizer().is_clean(answer.structured_content()));
}

// Promises: GUARD-8
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

fn excerpt(max_bytes: usize, text: &str) -> SanitizedAnswer {
    truncated(layer(max_bytes).oversize(Oversize::Excerpt), answer(text, "", ""))
}

#[test]
fn an_excerpt_shows_beginning_and_end_with_the_notice_between() {
    let lines: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
    let text = lines.join("\n");
    let answer = excerpt(1000, &text);
    let content = answer.content().as_str();
    assert!(
        content.starts_with("line 0\nline 1\n") && content.ends_with("\nline 998\nline 999"),
        "{content}"
    );
    let (head, rest) = content.split_once("\n[truncated: response exceeded size limit, ").expect("a notice");
    let (notice, tail) = rest.split_once(" bytes left out here]\n").expect("its end");
    assert!(head.len() <= 750 && head.len() > 740 && tail.len() <= 250 && tail.len() > 180, "{content}");
    let left_out: usize = notice.parse().expect("a number");
    assert_eq!(left_out + head.len() + tail.len(), text.len());
    assert_eq!(answer.report().bytes_left_out, left_out);
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(tail.starts_with("line "), "{tail}");
    assert_eq!(answer.report().bytes_out, content.len());
    assert_eq!(answer.report().page, None);
}

#[test]
fn a_small_limit_has_no_room_for_an_end() {
    let answer = excerpt(100, &"x".repeat(1000));
    assert!(answer.content().ends_with(", 900 bytes left out]"), "{}", answer.content());
}

#[test]
fn an_end_that_is_not_the_very_end_says_so() {
    let bytes = 2 * 1024 * 1024;
    let answer = excerpt(1000, &"x".repeat(bytes));
    let content = answer.content().as_str();
    let notices: Vec<&str> = content.lines().filter(|line| line.starts_with("[truncated: ")).collect();
    assert_eq!(notices.len(), 2, "{content}");
    assert!(content.ends_with(notices[1]));
    assert_eq!(answer.report().bytes_left_out, bytes - 1000);
}

#[test]
fn an_error_is_cut_also_where_content_gets_an_excerpt() {
    let layer = layer(1000).oversize(Oversize::Excerpt);
    let answer = truncated(layer, answer("", &"e".repeat(3000), ""));
    assert!(answer.error().ends_with(", 2000 bytes left out]"));
}

#[tokio::test]
async fn an_excerpt_that_is_kept_says_how_to_read_on() {
    let pages = Pages::new(Default::default(), sanitizer());
    let text = "all work and no play makes a dull text\n".repeat(100);
    let truncate = layer(1000).oversize(Oversize::Paged(pages.clone()));
    let mut inert = SanitizeLayer::new(sanitizer()).sanitize(answer(&text, "", ""));
    truncate.apply(&mut inert, "alice", "x", false);
    let handle = inert.report().page.clone().expect("it is kept");
    let more = format!("; talon.read_more handle={handle} offset=");
    let (_, offset) = inert.content().split_once(&more).expect("the notice says so");
    let offset: usize = offset.split_once(" reads on]\n").expect("and ends").0.parse().expect("a number");
    let page = pages.read("alice", &handle, offset, 100_000).expect("it is there");
    assert_eq!(page.text, text[offset..]);
    assert!(inert.content().starts_with(&text[..offset]));
    assert!(pages.read("mallory", &handle, offset, 100_000).is_err());
}

#[tokio::test]
async fn what_another_plugin_wrote_is_kept_as_its_own() {
    let pages = Pages::new(Default::default(), sanitizer());
    let mut read_on = answer(&"x".repeat(3000), "", "");
    read_on.written_by = Some("web".to_owned());
    let mut inert = SanitizeLayer::new(sanitizer()).sanitize(read_on);
    layer(1000).oversize(Oversize::Paged(pages.clone())).apply(&mut inert, "alice", "talon", false);
    let handle = inert.report().page.clone().expect("it is kept");
    assert_eq!(pages.read("alice", &handle, 0, 5000).expect("it is there").plugin, "web");
}

#[test]
fn an_operators_pattern_does_not_touch_our_notices() {
    let patterns = vec!["bytes (left out|exceeded)".to_owned(), "of [0-9]+ bytes".to_owned()];
    let sanitizer =
        Sanitizer::new(&talon_sanitize::Settings { forbidden_patterns: patterns }).expect("it is valid");
    let mut inert = SanitizeLayer::new(sanitizer.clone()).sanitize(answer(
        &"x".repeat(30),
        "",
        &format!("\"{}\"", "x".repeat(30)),
    ));
    TruncateLayer::new(10, sanitizer).apply(&mut inert, "", "x", false);
    assert!(inert.content().ends_with(" 20 bytes left out]"), "{}", inert.content());
    assert!(inert.structured_content().contains("of 32 bytes"), "{}", inert.structured_content());
}

proptest! {
    #[test]
    fn an_excerpt_is_inert_and_within_its_limit(text in hostile(), times in 1usize..60, max_bytes in 0usize..1500) {
        let answer = excerpt(max_bytes, &text.repeat(times));
        let (content, report) = (answer.content(), answer.report());
        prop_assert!(sanitizer().is_clean(content), "{}", content);
        const NOTICE: usize = 90;
        prop_assert!(content.len() <= max_bytes + 2 * NOTICE, "{}", content);
        prop_assert_eq!(report.bytes_out, content.len());
        prop_assert!(answer.0.content.plugin_bytes() <= max_bytes);
    }
}

// Promises: GUARD-88
#[test]
fn structured_content_is_shortened_and_keeps_its_form() {
    let json = serde_json::json!({"total": 7, "rows": vec!["r".repeat(20); 1000]}).to_string();
    let pages = Pages::new(Default::default(), sanitizer());
    let layer = layer(1000).shortens_structured(true).oversize(Oversize::Paged(pages.clone()));
    let answer = truncated(layer, answer("fine", "", &json));
    let short: serde_json::Value = serde_json::from_str(answer.structured_content()).unwrap();
    assert_eq!((&short["total"], &short["rows"][0]), (&7.into(), &"r".repeat(20).into()));
    assert!(answer.structured_content().len() <= 1000);
    let notice = answer.content().as_str();
    assert!(notice.starts_with("fine\n[truncated: structured content of "), "{notice}");
    assert!(answer.report().truncated());
    let handle = answer.report().page.clone().expect("all of it is stored");
    assert!(notice.contains(&format!("handle={handle} offset=0 reads all of it")), "{notice}");
}

// Promises: GUARD-91
#[test]
fn a_question_over_the_limit_is_refused_and_not_cut() {
    let question = |bytes: usize| {
        let request = talon_proto::plugin::InputRequest { id: "q".to_owned(), schema: "{}".to_owned() };
        let asked = Answer { input_request: Some(Box::new(request)), ..answer(&"?".repeat(bytes), "", "") };
        truncated(layer(100), asked)
    };
    let fits = question(100);
    assert!(fits.0.input_request.is_some() && *fits.outcome() == Outcome::Ok);
    let refused = question(101);
    assert_eq!(*refused.outcome(), Outcome::Refused { reason: crate::reason::TOO_LARGE, retryable: false });
    assert!(refused.0.input_request.is_none() && refused.content().is_empty());
    assert!(refused.error().contains("max_response_bytes (100)"), "{}", refused.error());
    assert_eq!(refused.report().bytes_out, refused.error().len());
}
