use proptest::prelude::*;

use super::*;
use crate::sanitized;

#[test]
fn a_raw_text_shows_nothing_of_itself() {
    assert_eq!(format!("{:?}", Raw::from("<|im_start|>")), "Raw(12 bytes)");
}

#[test]
fn only_a_sanitizer_makes_it_fit_to_be_shown() {
    let sanitizer = Sanitizer::default();
    let shown = sanitizer.sanitize("a <|im_start|>", &mut FamilyCounts::default());
    assert_eq!(shown, "a <·|im_start|>");
    assert_eq!(sanitizer.sanitize_line("a\nb"), "a\\nb");
    assert_eq!(
        sanitizer.sanitize_json(String::from("{\"a\": 1}"), &mut FamilyCounts::default()).unwrap(),
        "{\"a\": 1}"
    );
    assert_eq!(sanitizer.sanitize_json("{", &mut FamilyCounts::default()), None);
}

#[test]
fn a_cut_keeps_characters_whole_and_tells() {
    let mut raw = Raw::from("aé".to_owned());
    assert_eq!((raw.truncate(2), raw.len()), (2, 1));
}

#[test]
fn what_is_quoted_is_shown_in_quotes() {
    assert_eq!(format!("{:?}", Raw::from("a\"b").line()), r#""a\"b""#);
}

#[test]
fn a_bounded_line_says_that_it_was_cut() {
    assert_eq!(Raw::from("abcdef").line_within(6), "abcdef");
    assert_eq!(Raw::from("abcdef").line_within(3), "abc…");
    // It grew while it was sanitized.
    assert_eq!(Raw::from("ab\u{200b}").line_within(5), "ab…");
    // Syntax that a cut exposes is neutralized too.
    assert_eq!(Raw::from("a <tool_call").line_within(5), "a <·…");
}

#[test]
fn pieces_that_make_a_token_together_do_not() {
    let (one, two) = (Raw::from("<").line(), Raw::from("|im_start|>").line());
    let whole = sanitized!("{}{}", one, two);
    assert!(Sanitizer::default().is_clean(&whole), "{whole}");
    // Own words can make one, too.
    let name = Raw::from("plugin_output").line();
    let whole = sanitized!("[{}]", name);
    assert!(Sanitizer::default().is_clean(&whole), "{whole}");
    let whole = Sanitized::join([one, two], "");
    assert!(Sanitizer::default().is_clean(&whole), "{whole}");
}

#[test]
fn own_words_numbers_and_sanitized_pieces_go_together() {
    let text = Raw::from("a\u{1b}[2Jb").line();
    assert_eq!(
        sanitized!("instance {} says {:?} {text}", 3, text, text = text),
        "instance 3 says \"a␛[2Jb\" a␛[2Jb"
    );
    assert_eq!(sanitized!("just words"), "just words");
    assert_eq!(sanitized!("{}: {}", "own", true), "own: true");
}

/// Pieces from which hostile texts are made.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::sample::select(vec![
            "<",
            "|",
            ">",
            "[",
            "]",
            "/",
            "plugin_output",
            "tool_call",
            "|im_start|",
            "\u{1b}[2J",
            "\r",
            "\u{202e}",
            "(U+20",
            "0B)",
            "Human:",
            "\n\n",
            "&lt;",
            "\\u003c",
            " ",
            "\u{200b}",
            "structured",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn whatever_is_put_together_is_clean(pieces in proptest::collection::vec(piece(), 0..8), max in 0usize..60) {
        let sanitizer = Sanitizer::default();
        let lines: Vec<_> = pieces.iter().map(|piece| Raw::from(piece).line()).collect();
        for line in &lines {
            prop_assert!(sanitizer.is_clean(line) && !line.contains(char::is_control), "{line:?}");
        }
        let joined = Sanitized::join(&lines, "");
        prop_assert!(sanitizer.is_clean(&joined), "{joined:?}");
        let text: String = pieces.concat();
        let cut = Raw::from(&text).line_within(max);
        prop_assert!(sanitizer.is_clean(&cut), "{cut:?}");
        prop_assert!(cut.len() <= max + ELLIPSIS.len() && !cut.contains(char::is_control), "{cut:?}");
        if let [first, second, ..] = &lines[..] {
            let whole = sanitized!("[{}] <{}>", first, second);
            prop_assert!(sanitizer.is_clean(&whole), "{whole:?}");
        }
    }
}
