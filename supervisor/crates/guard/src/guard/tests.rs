use std::convert::Infallible;

use tower::{Layer as _, ServiceExt as _, service_fn};

use super::*;
use crate::call::{Call, Origin};
use crate::pages::Pages;
use crate::testing::{answer, sanitizer};

fn guard(envelope: EnvelopeMode) -> Guard {
    Guard::new(GuardSettings { envelope, ..GuardSettings::default() })
        .expect("there is no pattern to be wrong")
}

#[test]
fn a_text_comes_out_whole_with_a_report() {
    let long = "a [tool_call] b ".repeat(100_000);
    let (text, report) = guard(EnvelopeMode::Plain).text(long.as_str());
    assert_eq!((report.bytes_in, report.bytes_out), (long.len(), text.len()));
    assert!(text.len() > long.len() && !report.truncated() && report.neutralised_any());
    assert_eq!(report.neutralised["bracket"], 100_000);
    assert_eq!(report.kinds.values().sum::<u32>(), 100_000);
    assert_eq!(report.digest, Some(Digest::of(long.as_bytes())));
}

#[test]
fn json_stays_json_or_is_none() {
    let guard = guard(EnvelopeMode::Plain);
    let (json, report) = guard.json("{\"a\": \"<|im_start|>\"}").expect("it is JSON");
    assert_eq!(json, "{\"a\": \"<·|im_start|>\"}");
    assert_eq!(report.neutralised["bar-tag"], 1);
    assert!(guard.json("{").is_none());
}

#[test]
fn a_bad_pattern_is_told() {
    let settings = GuardSettings { forbidden_patterns: vec!["(".to_owned()], ..GuardSettings::default() };
    assert!(Guard::new(settings).is_err());
}

#[tokio::test]
async fn the_facade_and_the_layers_do_the_same() {
    let text = format!("[tool_call] {}", "x".repeat(1 << 17));
    let answer = answer(&text, "", "{\"a\": \"[/plugin_output]\"}");
    let guard = guard(EnvelopeMode::Plain);
    let by_hand = guard.answer("", "x", "1", answer.clone());
    let plugin = service_fn(move |_: Call| std::future::ready(Ok::<_, Infallible>(answer.clone())));
    let sanitized = guard.sanitize_layer().layer(plugin);
    let stack = guard.wrap_layer().layer(guard.truncate_layer().layer(sanitized));
    let Ok(by_stack) = stack.oneshot(Call::new("1", "x", "run", Origin::Model)).await;
    assert_eq!(by_hand.into_parts(), by_stack.into_parts());
}

#[test]
fn what_is_kept_for_reading_on_is_not_cut_before() {
    let pages = Pages::new(Default::default(), sanitizer());
    let oversize = Oversize::Paged(pages.clone());
    let guard = Guard::new(GuardSettings { oversize, ..GuardSettings::default() }).expect("no pattern");
    let text = "x".repeat(pages.settings().max_text_bytes);
    let guarded = guard.answer("s", "x", "1", answer(&text, "", ""));
    let handle = guarded.report().page.clone().expect("it is kept");
    let page = pages.read("s", &handle, 0, usize::MAX).expect("it is there");
    assert_eq!((page.total, page.next_offset), (text.len(), None));
}

#[test]
fn a_block_names_who_wrote_it() {
    let mut answer = answer("text", "", "");
    answer.written_by = Some("web".to_owned());
    let guarded = guard(EnvelopeMode::Nonce).answer("s", "talon", "1", answer);
    assert!(guarded.block().as_str().contains(" plugin=web call=1 "), "{}", guarded.block());
}
