//! What must hold of any input, in one place for the property tests and the fuzz target.

use talon_sanitize::{Sanitizer, Tally};

use super::decode::{decode_fully, invisible};

/// Control strings that stand for themselves wherever they are. Turns and other forms that depend on their
/// place, and tokens that are ordinary code in lower case, have tests of their own.
const NEEDLES: [&str; 29] = [
    "<tool_call>",
    "</tool_call>",
    "<|im_start|>",
    "<|im_end|>",
    "<|end|>",
    "<|tool_call|>",
    "[tool_calls]",
    "[/inst]",
    "[tool_call]",
    "[tool_use]",
    "[available_tools]",
    "[plugin_output]",
    "[/plugin_output]",
    "[structured]",
    "[/structured]",
    "<invokename=",
    "<parametername=",
    "<function=",
    "<function_calls>",
    "</s>",
    "<<sys>>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<minimax:tool_call>",
    "\"tool_calls\":[",
    "\"function_call\":{",
    "\"functioncall\":{",
    "<arg_key>",
    "[/tool_results]",
];

/// The control strings that the fully decoded text still holds.
pub(crate) fn survivors(text: &str) -> Vec<&'static str> {
    let decoded = decode_fully(text);
    NEEDLES.into_iter().filter(|needle| decoded.contains(needle)).collect()
}

pub(crate) fn is_visible(c: char) -> bool {
    !c.is_control()
        && !invisible(c)
        && !matches!(u32::from(c), 0x2060..=0x206f | 0xfff0..=0xfffb | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a)
}

fn is_subsequence(of: &str, sequence: impl Iterator<Item = char>) -> bool {
    let mut rest = of.chars();
    let mut sequence = sequence;
    sequence.all(|wanted| rest.any(|c| c == wanted))
}

/// Checks every property that holds of a single text.
pub(crate) fn check(text: &str) {
    let sanitizer = Sanitizer::default();
    let mut tally = Tally::default();
    let out = sanitizer.text(text, &mut tally);
    assert_eq!(survivors(&out), [""; 0], "in {out:?} from {text:?}");
    assert_eq!(sanitizer.text(&out, &mut Tally::default()), out, "not settled: {out:?} from {text:?}");
    assert!(sanitizer.is_clean(&out));
    assert_eq!(tally.total() == 0, out == text);
    assert!(out.len() <= 4 * text.len() + 16, "{} bytes became {}", text.len(), out.len());
    assert!(
        is_subsequence(&out, text.chars().filter(|&c| is_visible(c))),
        "{text:?} lost something in {out:?}"
    );

    let line = sanitizer.line(text, &mut Tally::default());
    assert!(
        !line.contains(
            |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
        )
    );
    assert_eq!(sanitizer.line(&line, &mut Tally::default()), line);

    if let Some(json) = sanitizer.json(text, &mut Tally::default()) {
        assert_eq!(survivors(&json), [""; 0], "in {json} from {text}");
        assert_eq!(sanitizer.json(&json, &mut Tally::default()).as_deref(), Some(&*json));
    }
}

/// The fuzz target: any bytes, read as text the way the guard reads them.
pub(crate) fn fuzz_one(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check(&text);
    let sanitizer = Sanitizer::default();
    let out = sanitizer.text(&text, &mut Tally::default());
    let cut = sanitizer.safe_cut(&out, out.len() / 2);
    assert!(cut <= out.len() / 2 && sanitizer.is_clean(&out[..cut]), "cut {out:?} at {cut}");
}
