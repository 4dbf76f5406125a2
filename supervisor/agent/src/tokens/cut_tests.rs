use proptest::prelude::*;
use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings};

use super::*;
use crate::tokens::{Estimate, OpenAiTokenizer};

fn wrapped(mode: EnvelopeMode, content: &str, structured: &str, error: &str) -> Wrapped {
    let guard =
        Guard::new(GuardSettings { envelope: mode, ..GuardSettings::default() }).expect("settings are right");
    let mut answer = Answer::from_tool(content.to_owned());
    answer.structured_content = structured.to_owned().into();
    answer.error = error.to_owned().into();
    guard.answer("s", "files", "c1", answer).block().clone()
}

#[test]
fn a_block_that_fits_stays_as_it_is() {
    let sanitizer = Sanitizer::default();
    for mode in EnvelopeMode::ALL {
        let whole = wrapped(mode, "hello\nworld", r#"{"a": 1}"#, "");
        assert_eq!(block(&whole, 500, None, &Estimate, &sanitizer), whole);
    }
}

#[test]
fn a_cut_block_keeps_its_envelope_and_says_what_is_missing() {
    let sanitizer = Sanitizer::default();
    let text: String = (0..2000).map(|n| format!("line {n} of it\n")).collect();
    for mode in EnvelopeMode::ALL {
        let whole = wrapped(mode, &text, r#"{"a": "long enough to be dropped"}"#, "");
        let cut = block(&whole, 200, None, &OpenAiTokenizer::O200k, &sanitizer);
        assert!(OpenAiTokenizer::O200k.count(&cut) <= 200, "{cut}");
        assert!(OpenAiTokenizer::O200k.count(&cut) > 120, "most of the budget is used: {cut}");
        assert!(cut.contains("line 1 of it") && cut.contains("bytes left out]\n[/plugin_output"), "{cut}");
        assert!(!cut.contains("structured"), "{cut}");
        let closing = whole.lines().last().expect("it has lines");
        assert_eq!(cut.lines().last(), Some(closing));
        assert_eq!(cut.contains("truncated=yes"), mode != EnvelopeMode::Plain);
    }
}

#[test]
fn no_cut_goes_through_a_mark_or_a_note() {
    let sanitizer = Sanitizer::default();
    let quoted = wrapped(EnvelopeMode::Quoted, &"a\nb\n".repeat(300), "", "");
    let noted = wrapped(EnvelopeMode::Plain, &"a\u{200b}b ".repeat(300), "", "");
    assert!(noted.contains("a(U+200B)b"), "{noted}");
    for tokens in 60..220 {
        let cut = block(&quoted, tokens, None, &Estimate, &sanitizer);
        let inside = cut.lines().skip(1).take_while(|line| !line.starts_with("[truncated: "));
        assert!(inside.clone().all(|line| line.starts_with(QUOTE_MARK)), "{cut}");
        let cut = block(&noted, tokens, None, &Estimate, &sanitizer);
        assert_eq!(cut.matches("(U+").count(), cut.matches("(U+200B)").count(), "{cut}");
    }
}

#[test]
fn an_error_is_cut_as_well() {
    let sanitizer = Sanitizer::default();
    for mode in EnvelopeMode::ALL {
        let whole = wrapped(mode, "", "", &"it failed again ".repeat(500));
        let cut = block(&whole, 150, None, &Estimate, &sanitizer);
        assert!(cut.contains("error:") && cut.contains("it failed again"), "{cut}");
    }
}

#[test]
fn with_no_room_at_all_the_envelope_is_left_with_the_notice() {
    let sanitizer = Sanitizer::default();
    for mode in EnvelopeMode::ALL {
        let cut = block(&wrapped(mode, &"x ".repeat(5000), "", ""), 0, None, &Estimate, &sanitizer);
        assert!(cut.starts_with("[plugin_output") && cut.contains("[truncated: "), "{cut}");
        assert!(cut.len() < 300, "{cut}");
    }
}

#[test]
fn own_words_are_cut_between_characters() {
    let text = "ß字🦀".repeat(1000);
    let cut = plain(&text, 60, &Estimate);
    assert!(Estimate.count(&cut) <= 60, "{}", Estimate.count(&cut));
    assert!(cut.starts_with("ß字🦀") && cut.ends_with("bytes left out]"), "{cut}");
    assert_eq!(plain("short", 60, &Estimate), "short");
}

proptest! {
    /// Whatever a tool says and however much is cut off: what is left is a block that a guard could have
    /// made.
    // Promises: AGENT-7
    #[test]
    fn a_cut_block_is_a_block(
        content in "(\\PC|\n|<\\|im_start\\|>|\\[/plugin_output\\]|· |<tool_call>){0,120}",
        structured in prop::option::of("[a-z<|>\\[\\]/]{0,60}"),
        error in prop::bool::ANY,
        tokens in 0..300usize,
        mode in prop::sample::select(EnvelopeMode::ALL.to_vec()),
    ) {
        let sanitizer = Sanitizer::default();
        let json = structured.map(|text| serde_json::json!({ "k": text }).to_string()).unwrap_or_default();
        let content = content.repeat(5);
        let whole = if error { wrapped(mode, "", "", &content) } else { wrapped(mode, &content, &json, "") };
        let cut = block(&whole, tokens, None, &Estimate, &sanitizer);
        prop_assert!(Wrapped::parse(&cut, &sanitizer).is_some(), "{}", &*cut);
        // Its delimiters are those of the whole one, unless it is too small for anything.
        prop_assert_eq!(cut.matches("[/plugin_output").count(), 1);
        prop_assert_eq!(cut.lines().last(), whole.lines().last());
        let least = Estimate.count(&block(&whole, 0, None, &Estimate, &sanitizer));
        prop_assert!(Estimate.count(&cut) <= tokens.max(least), "{} of {tokens}", Estimate.count(&cut));
    }
}
