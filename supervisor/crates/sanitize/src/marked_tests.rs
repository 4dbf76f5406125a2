use proptest::prelude::*;

use super::*;
use crate::FamilyCounts;

fn spans(raw: &str) -> Vec<(String, String)> {
    let clean = Sanitizer::default().text(raw, &mut FamilyCounts::default()).into_owned();
    let mut spans = MarkedSpans::default();
    spans.add_text(raw, &clean);
    spans.into_iter().map(|span| (span.marked, span.original)).collect()
}

fn pair(marked: &str, original: &str) -> (String, String) {
    (marked.to_owned(), original.to_owned())
}

#[test]
fn words_and_short_lines_have_their_originals() {
    assert_eq!(spans("nothing here"), []);
    assert_eq!(spans("<tool_call>"), [pair("<·tool_call>", "<tool_call>")]);
    assert_eq!(
        spans("see <think>now</think> and\nx\u{200b}y"),
        [
            pair("<·think>now<·/think>", "<think>now</think>"),
            pair("see <·think>now<·/think> and", "see <think>now</think> and"),
            pair("x(U+200B)y", "x\u{200b}y"),
        ]
    );
    let long = format!("{} <|im_start|> {}", "a ".repeat(100), "b ".repeat(100));
    assert_eq!(spans(&long), [pair("<·|im_start|>", "<|im_start|>")]);
}

#[test]
fn colours_are_no_marks_and_do_not_hide_them() {
    assert_eq!(spans("\u{1b}[31mred\u{1b}[0m"), []);
    assert_eq!(spans("x \u{1b}[31m<\u{1b}[1mthink>\u{1b}[0m")[0], pair("<·think>", "<\u{1b}[1mthink>"));
}

#[test]
fn what_stands_for_several_originals_has_all_of_them() {
    let found = spans("a <think>\nb <·think>");
    assert!(
        found.contains(&pair("<·think>", "<think>")) && found.contains(&pair("<·think>", "<·think>")),
        "{found:?}"
    );
    // The line is not ambiguous.
    assert_eq!(found.iter().filter(|(marked, _)| marked == "a <·think>").count(), 1);
}

#[test]
fn strings_of_json_are_listed_decoded() {
    let raw = r#"{"a": ["\u003cthink>\n1"], "tool_calls": 1, "z": "[/INST]"}"#;
    let clean = Sanitizer::default().json(raw, &mut FamilyCounts::default()).expect("valid").into_owned();
    let mut spans = MarkedSpans::default();
    spans.add_json(raw, &clean);
    let found: Vec<&str> = spans.iter().map(|span| span.original.as_str()).collect();
    assert!(found.contains(&"<think>") && found.contains(&"[/INST]"), "{found:?}");
    spans.add_json("{", "{}");
    assert_eq!(spans.left_out(), 1);
}

#[test]
fn the_size_is_limited_and_what_is_over_it_is_counted() {
    let raw: String = (0..5_000).map(|n| format!("<tool_call_{n}> [TOOL_CALLS] <|x{n}|>\n")).collect();
    let clean = Sanitizer::default().text(&raw, &mut FamilyCounts::default()).into_owned();
    let mut spans = MarkedSpans::default();
    spans.add_text(&raw, &clean);
    assert!(spans.iter().map(MarkedSpan::bytes).sum::<usize>() <= MarkedSpans::MAX_BYTES);
    assert!(spans.left_out() > 0);
}

#[test]
fn marks_are_counted_and_dots_are_not() {
    for (text, marks) in [
        ("<·think> [·/INST]", 2),
        ("a · b · c, <·b>", 0),
        ("x(U+200B)y ␛[2J", 2),
        ("(U+0041) U+200B", 0),
        ("", 0),
    ] {
        assert_eq!(count_marks(text), marks, "{text}");
    }
}

proptest! {
    /// What is listed for a line of any text leads back to that line.
    #[test]
    fn a_span_is_a_piece_of_both_texts(pieces in prop::collection::vec(piece(), 0..20)) {
        let raw = pieces.concat();
        let clean = Sanitizer::default().text(&raw, &mut FamilyCounts::default()).into_owned();
        let mut spans = MarkedSpans::default();
        spans.add_text(&raw, &clean);
        prop_assert_eq!(spans.left_out(), 0);
        for span in spans.iter() {
            prop_assert!(clean.contains(&span.marked), "{span:?}");
            prop_assert!(raw.contains(&span.original), "{span:?}");
        }
        // Every marked line can be restored, by itself or by its words.
        for (original, line) in raw.split('\n').zip(clean.split('\n')) {
            let visible = Alignment::of(original, line).expect("marks and notes alone");
            let whole = spans.iter().any(|span| span.marked == line && line.len() >= MIN_SPAN_BYTES + MARK.len_utf8());
            prop_assert!(visible.visible().next().is_none() || whole || line.len() > MAX_LINE_BYTES || line.len() < 5, "{line:?}");
        }
    }

    #[test]
    fn any_two_texts_are_taken(raw in any::<String>(), clean in any::<String>()) {
        let mut spans = MarkedSpans::default();
        spans.add_text(&raw, &clean);
        spans.add_json(&raw, &clean);
        prop_assert!(count_marks(&clean) <= clean.len());
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<tool_call>",
        "</think>",
        "<|im_start|>",
        "[/INST]",
        "[plugin_output]",
        "\n",
        "\n\nHuman: hi\n\nAssistant: x",
        " ",
        "\u{200b}",
        "\u{1b}[31m",
        "\u{1b}[2J",
        "·",
        "a",
        "日本",
        "\u{202e}",
        "```tool_code\n",
        "{\"tool_calls\": []}",
        "<·think>",
        "\t",
        "\r\n",
    ])
}
