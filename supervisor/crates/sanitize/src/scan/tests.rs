//! The quick path against the plain one: a scan that asks only where it must finds exactly what a scan that
//! asks everywhere finds.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Visits every character that could begin anything, without asking whether it is worth it.
fn scan_everywhere(text: &str, ending: TextEnd) -> Vec<Edit> {
    let mut scan = Scan::new(text, ending);
    scan.thorough = true;
    scan.begin_line(0, 0);
    let (mut at, bytes) = (0, text.as_bytes());
    while let Some(c) = text[at..].chars().next() {
        let begins = (!matches!(c, '\t' | '\x0c') || bytes.get(at + 1) == Some(&b':'))
            && (!c.is_ascii()
                || bytes.get(at + 1) == Some(&b':')
                || c.is_ascii_control()
                || matches!(c, '<' | '[' | '"' | '`' | '#' | '|' | '~' | '&' | '\\' | '%'));
        at = if begins { scan.visit(at) } else { at + 1 };
    }
    scan.findings.finish()
}

fn check(text: &str) {
    for ending in [TextEnd::Open, TextEnd::Closed] {
        assert_eq!(scan(text, ending), scan_everywhere(text, ending), "{text:?} {ending:?}");
    }
}

/// Pieces of control syntax, of disguises for it, and of separators.
const PIECES: [&str; 128] = [
    "<",
    "</",
    "< ",
    "<|",
    "|>",
    "|",
    ">",
    "/>",
    "/",
    "[",
    "[/",
    "]",
    "]<]",
    "[>[",
    "~",
    "]~b]",
    "\"",
    "\" ",
    "`",
    "```",
    "#",
    "###",
    "&",
    "&amp;",
    "&lt;",
    "&lt",
    "lt;",
    "&#60;",
    "&#60",
    "&#x3c;",
    "&quot;",
    "&#10;",
    "&lsqb;",
    "%",
    "%25",
    "%3c",
    "%5b",
    "%22",
    "%0a",
    "%5c",
    "\\",
    "\\\\",
    "\\u003c",
    "\\x3c",
    "\\u{3c}",
    "\\n",
    "\\r",
    "\\\"",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    " ",
    "  ",
    "\t",
    "\u{b}",
    "\u{c}",
    "\0",
    "\u{1b}[0m",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{200b}",
    "\u{200d}",
    "\u{200e}",
    "\u{fe0f}",
    "\u{301}",
    "\u{a0}",
    "·",
    "＜",
    "〈",
    "［",
    "＂",
    "“",
    "＃",
    "｀",
    "％",
    "＆",
    "＼",
    "｜",
    "а",
    "о",
    "ｔ",
    "字",
    "한",
    "😀",
    ":",
    "_",
    "-",
    "=",
    "{",
    "}",
    ",",
    ".",
    "(",
    "'",
    "!",
    "tool",
    "Tool",
    "TOOL",
    "call",
    "calls",
    "_call",
    "function",
    "func",
    "tion",
    "type",
    "tool_use",
    "invoke",
    "in",
    "voke",
    "name",
    "think",
    "s",
    "inst",
    "args",
    "structured",
    "plugin_output",
    "human",
    "Human:",
    "Assistant:",
    "System:",
    "User:",
    "Action:",
    "Action Input:",
    "Observation:",
    "instruction:",
    ">>>get",
];

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => select(&PIECES[..]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9]{1,10}",
        1 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// The same far enough into a text that it meets the borders of chunks.
fn padded() -> impl Strategy<Value = String> {
    (0..140usize, hostile(), hostile())
        .prop_map(|(pad, one, other)| format!("{}{one}{}{other}", "x".repeat(pad), "y ".repeat(pad / 3)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 4_000 } else { 100_000 }))]

    // Promises: GUARD-70
    #[test]
    fn the_quick_path_finds_what_a_scan_of_everything_finds(text in prop_oneof![hostile(), padded()]) {
        check(&text);
    }

    // Promises: GUARD-70
    #[test]
    fn also_in_arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn also_in_every_known_control_string() {
    let known = include_str!("../../tests/data/control_tokens_known.jsonl");
    for line in known.lines() {
        let token: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
        for string in token.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()) {
            for text in [
                string.to_owned(),
                string.to_uppercase(),
                format!("a {string} b\n"),
                string.replace('_', " _ "),
            ] {
                check(&text);
            }
        }
    }
}

// Promises: GUARD-70
#[test]
fn also_of_a_colon_at_the_beginning_of_a_line() {
    for line_break in
        ["\\r", "\\n", "\r", "\n", "\r\n", "&#10;", "&#xd;", "%0a", "\u{85}", "\u{2028}", "\u{0b}"]
    {
        for behind in ["", " hello", "\\\\|"] {
            check(&format!("Assistant:human{line_break}:{behind}"));
            check(&format!("System:Assistant:human{line_break}\u{301}:{behind}"));
        }
    }
}
