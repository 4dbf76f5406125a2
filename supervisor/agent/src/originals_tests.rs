use proptest::prelude::*;
use serde_json::json;
use talon_guard::Sanitizer;
use talon_sanitize::{FamilyCounts, MarkedSpans};

use super::*;

/// The text as a model sees it, and the spans that come with it.
fn read(raw: &str) -> (String, MarkedSpans) {
    let clean = Sanitizer::default().text(raw, &mut FamilyCounts::default()).into_owned();
    let mut spans = MarkedSpans::default();
    spans.add_text(raw, &clean);
    (clean, spans)
}

fn restored(originals: &mut Originals, text: &str) -> (String, Restored) {
    let (mut value, mut restored) = (json!(text), Restored::default());
    originals.restore(&mut value, &mut restored);
    (value.as_str().unwrap().to_owned(), restored)
}

// Promises: AGENT-91
#[test]
fn what_a_model_copies_gets_its_originals_back() {
    let mut originals = Originals::default();
    let file = "# Notes\n<tool_call> is a tag\nx\u{200b}y\nHuman: hi\n\nAssistant: [/INST]\n";
    let (seen, spans) = read(file);
    assert_ne!(seen, file);
    originals.add(spans.iter());
    let mut arguments = json!({ "path": "a", "lines": [seen, 7], "edit": { "word": "see <·tool_call>!" } });
    let mut what = Restored::default();
    originals.restore(&mut arguments, &mut what);
    assert_eq!(arguments, json!({ "path": "a", "lines": [file, 7], "edit": { "word": "see <tool_call>!" } }));
    assert_eq!(what.marks_left, 0);
}

// Promises: AGENT-91
#[test]
fn what_is_not_known_or_not_certain_stays_and_is_counted() {
    let mut originals = Originals::default();
    assert_eq!(
        restored(&mut originals, "a <·think>"),
        ("a <·think>".to_owned(), Restored { pieces: 0, marks_left: 1 })
    );
    originals.add(read("a <think>").1.iter());
    assert_eq!(restored(&mut originals, "b <·think>").0, "b <think>");
    // Another file has the mark itself. Only whole lines are certain now.
    originals.add(read("b <·think> and <think>").1.iter());
    assert_eq!(
        restored(&mut originals, "c <·think>"),
        ("c <·think>".to_owned(), Restored { pieces: 0, marks_left: 1 })
    );
    assert_eq!(restored(&mut originals, "a <·think>").0, "a <think>");
    assert_eq!(restored(&mut originals, "b <·think> and <·think>").0, "b <·think> and <think>");
}

// Promises: AGENT-103
#[test]
fn what_a_sub_agent_repeats_crosses_into_the_outer_turn() {
    let mut inner = Originals::default();
    inner.add(read("a <think>\nb [/INST]").1.iter());
    inner.add(read("<|im_start|>user").1.iter());
    // This one has two originals.
    inner.add(read("b <·tool_call> and <tool_call>").1.iter());
    let said =
        json!({ "summary": "see \"<·think>\"\nand b [·/INST] and <·tool_call>", "n": [1] }).to_string();
    let crossed = inner.repeated_in(&said);
    assert!(!crossed.iter().any(|span| span.marked.contains("im_start")), "{crossed:?}");
    let mut outer = Originals::default();
    outer.add(&crossed);
    assert_eq!(restored(&mut outer, "x <·think> b [·/INST]").0, "x <think> b [/INST]");
    outer.add(read("c <tool_call>").1.iter());
    let uncertain = "<·tool_call>";
    assert_eq!(
        restored(&mut outer, uncertain),
        (uncertain.to_owned(), Restored { pieces: 0, marks_left: 1 })
    );
    assert_eq!(inner.repeated_in("nothing of it"), []);
}

// Promises: AGENT-103
#[test]
fn what_crosses_is_bounded() {
    let span = |n: usize| MarkedSpan { marked: format!("<·think{n:04}>"), original: "x".repeat(1 << 10) };
    let spans: Vec<MarkedSpan> = (0..1_000).map(span).collect();
    let mut inner = Originals::default();
    inner.add(&spans);
    let said: String = spans.iter().map(|span| span.marked.as_str()).collect();
    let crossed = inner.repeated_in(&said);
    let bytes: usize = crossed.iter().map(|span| span.marked.len() + span.original.len()).sum();
    assert!(bytes <= MAX_REPEATED_BYTES && bytes > MAX_REPEATED_BYTES - 2_048, "{bytes}");
}

#[test]
fn text_without_marks_is_left_alone() {
    let mut originals = Originals::default();
    originals.add(read("<think> [/INST]").1.iter());
    for text in ["", "a · b", "<think>", "plain"] {
        assert_eq!(restored(&mut originals, text), (text.to_owned(), Restored::default()));
    }
}

#[test]
fn the_size_is_limited() {
    let mut originals = Originals::default();
    let span = |n: usize| MarkedSpan {
        marked: format!("<·think{n:06}{}>", "x".repeat(500)),
        original: String::new(),
    };
    let spans: Vec<MarkedSpan> = (0..10_000).map(span).collect();
    originals.add(&spans);
    assert!(originals.bytes <= MAX_BYTES);
}

proptest! {
    /// A file that is read and written back is the same, whatever is in it.
    #[test]
    fn a_file_comes_back_as_it_was(lines in prop::collection::vec(line(), 1..12)) {
        let file = lines.join("\n");
        let (seen, spans) = read(&file);
        let mut originals = Originals::default();
        originals.add(spans.iter());
        prop_assert_eq!(restored(&mut originals, &seen).0, file);
    }
}

/// Lines that are marked, and that are told apart.
fn line() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "<tool_call>",
        "</think>",
        "<|im_start|>user",
        "[/INST]",
        "[plugin_output]",
        "a\u{200b}b",
        "x",
        "y · z",
        "日本",
        "\u{1b}[2J",
        "{\"tool_calls\": []}",
        "Action Input: x",
        "\u{202e}",
    ]);
    prop::collection::vec(word, 0..4).prop_map(|words| words.join(" "))
}
