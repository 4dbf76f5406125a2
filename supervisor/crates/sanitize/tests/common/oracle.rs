//! What must hold of any input, in one place for the property tests and the fuzz target.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use talon_sanitize::{FamilyCounts, Sanitizer};

use super::decode::{decode_fully, invisible};

/// Control strings that have one meaning wherever they are. Turns and other forms that depend on their
/// place, and tokens that are ordinary code in lower case, have separate tests.
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

/// Shapes that stand for themselves wherever they are, written for the skeleton: decoded, folded, without
/// white space. They are this file's own, not the crate's, and stricter than any list: a name counts by the
/// words in it.
///
/// Names are as long as names get: the crate reads 64 characters, and a name that begins with a digit is
/// none.
///
/// Where white space disappears, words meet that never met: `a <| b |> c` becomes `<|b|>`, `<x tool_call>`
/// becomes `<xtool_call>`. So a name between bars has to speak of turns or tools here, and a word of a name
/// has to begin behind an underscore or a delimiter.
const SHAPES: [&str; 12] = [
    // Bars, closed.
    r"<\|/?(?:[a-z][a-z0-9]{0,12}_){0,2}(?:system|user|assistant|human|tool|tools|function|im|call|channel|message|turn|header|role)(?:_[a-z0-9_]{0,20})?\|>",
    // Bars on one side.
    r"<(?:[a-z][a-z0-9]{0,12}_){0,2}(?:tool|function)_(?:call|response|result)s?\|>",
    // Tags, closed.
    r"</?(?:[a-z_][a-z0-9_]{0,20}:)?(?:[a-z][a-z0-9]{0,12}_){0,2}(?:tool|tools|function)_(?:call|use|result|response|output|code|request)s?(?:_[a-z0-9_]{0,20})?/?>",
    r"</?(?:[a-z_][a-z0-9_]{0,20}:)?(?:start|end|begin)_of_[a-z0-9_]{1,20}>",
    r"</?(?:[a-z_][a-z0-9_]{0,20}:)?(?:think|thinking|assistant|human|invoke|toolcall|tool_calls|available_tools|arg_key|arg_value)>",
    // Tags with an attribute or an assignment.
    r"<(?:[a-z_][a-z0-9_]{0,20}:)?(?:invoke|parameter|function|tool_call|function_call|tool)(?:name)?=",
    // Brackets.
    r"\[/?(?:[a-z][a-z0-9]{0,12}_){0,2}(?:tool|tools|function)_(?:call|use|result|response|content|request)s?\]",
    r"\[/?(?:plugin_output|available_tools|system_prompt)\]",
    r"\[/(?:inst|structured|tool_results)\]",
    // Sentinels.
    r"\]<\]|\[>\[|\]~b\]|\[e~\[",
    // JSON.
    "\"(?:tool_?calls?|function_?calls?|tool_?use|function_?response|tool_?result)\":[\\[{\"]",
    // An end of a text, and Llama's system prompt.
    r"</s>|<</?sys>>",
];

/// Whether the text ends inside an escape, in a name that may be a namespace, or behind a quote, so that the
/// text behind it decides. A mark there would change every text that ends in `100%`, `a <b` or a quotation.
pub(crate) fn ends_spelling(text: &str) -> bool {
    static UNFINISHED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r#"(?i)(?:&[#a-z0-9;&%\\]{0,24}|\\[ux0-9a-f{]{0,10}|%[u0-9a-f]{0,6}|<\s*[a-z0-9_]*\s*|"\s*)$"#,
        )
        .expect("a valid pattern")
    });
    UNFINISHED.is_match(text) || UNFINISHED.is_match(&decode_fully(text))
}

/// The control strings that the fully decoded text still holds.
pub(crate) fn survivors(text: &str) -> Vec<String> {
    static FINDER: LazyLock<Regex> = LazyLock::new(|| Regex::new_many(&SHAPES).expect("valid patterns"));
    let decoded = decode_fully(text);
    let listed = NEEDLES.into_iter().filter(|needle| decoded.contains(needle)).map(str::to_owned);
    let shaped = FINDER.find_iter(&decoded).map(|found| decoded[found.range()].to_owned());
    listed.chain(shaped).collect()
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

/// A text without a terminal's colours, which are removed and not shown.
fn without_colours(text: &str) -> String {
    static COLOURS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\x1b\[(?:[0-9;:]{0,64}m|0?K)").expect("a valid pattern"));
    let (mut out, mut copied) = (String::new(), 0);
    for colour in COLOURS.find_iter(text) {
        out.push_str(&text[copied..colour.start()]);
        copied = colour.end();
    }
    out + &text[copied..]
}

/// Checks every property that holds of a single text.
pub(crate) fn check(text: &str) {
    let sanitizer = Sanitizer::default();
    let mut tally = FamilyCounts::default();
    let out = sanitizer.text(text, &mut tally);
    let left = survivors(&out);
    assert!(left.is_empty(), "{left:?} in {out:?} from {text:?}");
    assert_eq!(sanitizer.text(&out, &mut FamilyCounts::default()), out, "not settled: {out:?} from {text:?}");
    assert!(sanitizer.is_clean(&out));
    assert_eq!(tally.total() == 0, out == text);
    assert!(out.len() <= 4 * text.len() + 16, "{} bytes became {}", text.len(), out.len());
    assert!(
        is_subsequence(&out, without_colours(text).chars().filter(|&c| is_visible(c))),
        "{text:?} lost something in {out:?}"
    );

    let line = sanitizer.line(text, &mut FamilyCounts::default());
    assert!(
        !line.contains(
            |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}')
        )
    );
    assert_eq!(sanitizer.line(&line, &mut FamilyCounts::default()), line);

    if let Some(json) = sanitizer.json(text, &mut FamilyCounts::default()) {
        let left = survivors(&json);
        assert!(left.is_empty(), "{left:?} in {json} from {text}");
        assert_eq!(sanitizer.json(&json, &mut FamilyCounts::default()).as_deref(), Some(&*json));
    }
}

/// The fuzz target: any bytes, read as text the way the guard reads them.
pub(crate) fn fuzz_one(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check(&text);
    let sanitizer = Sanitizer::default();
    let out = sanitizer.text(&text, &mut FamilyCounts::default());
    let cut = sanitizer.safe_cut(&out, out.len() / 2);
    assert!(cut <= out.len() / 2 && sanitizer.is_clean(&out[..cut]), "cut {out:?} at {cut}");
}

/// The fuzz target for JSON: what is JSON stays JSON of the same shape, and safe.
pub(crate) fn fuzz_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let sanitizer = Sanitizer::default();
    let Some(out) = sanitizer.json(&text, &mut FamilyCounts::default()) else { return };
    let before: serde_json::Value = serde_json::from_str(&text).expect("accepted as JSON");
    let after: serde_json::Value = serde_json::from_str(&out).expect("still JSON");
    assert!(same_shape(&before, &after), "{text} became {out}");
    let left = survivors(&out);
    assert!(left.is_empty(), "{left:?} in {out} from {text}");
    assert_eq!(
        sanitizer.json(&out, &mut FamilyCounts::default()).as_deref(),
        Some(&*out),
        "not settled, from {text}"
    );
}

/// The fuzz target for what is cut off and put together: prefixes are safe, cuts clean, two outputs safe in a
/// row, and so are fields of JSON in front of a text.
pub(crate) fn fuzz_join(data: &[u8]) {
    /// How many prefixes to look at: decoding each is slow.
    const PREFIXES: usize = 24;
    let text = String::from_utf8_lossy(data);
    let middle = text.floor_char_boundary(text.len() / 2);
    let sanitizer = Sanitizer::default();
    let clean = |text: &str| sanitizer.text(text, &mut FamilyCounts::default()).into_owned();
    let (whole, one, two) = (clean(&text), clean(&text[..middle]), clean(&text[middle..]));
    for end in (0..whole.len()).rev().filter(|&end| whole.is_char_boundary(end)).take(PREFIXES) {
        let left = survivors(&whole[..end]);
        assert!(left.is_empty(), "{left:?} in {:?} of {whole:?}", &whole[..end]);
        let cut = sanitizer.safe_cut(&whole, end);
        assert!(cut <= end && sanitizer.is_clean(&whole[..cut]), "cut {whole:?} at {end}: {cut}");
    }
    let json = serde_json::to_string(&text[..middle]).expect("a string is JSON");
    let json = sanitizer.json(&json, &mut FamilyCounts::default()).unwrap_or_default();
    let tight = if ends_spelling(&one) { String::new() } else { format!("{one}{two}") };
    let apart = if ends_spelling(&one) { String::new() } else { format!("{one}\n{two}") };
    for joined in [tight, apart, format!("{two}\n\n[·structured]\n{json}")] {
        let left = survivors(&joined);
        assert!(left.is_empty(), "{left:?} in {joined:?}: {one:?} and {two:?}");
    }
}

/// Whether two values differ in nothing but their strings.
pub(crate) fn same_shape(before: &serde_json::Value, after: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (before, after) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_shape(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.values().all(|a| b.values().any(|b| same_shape(a, b)))
        }
        // serde_json reads the last digit of some floats differently than it wrote it.
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= a.abs() * 1e-12,
            _ => a == b,
        },
        (a, b) => a == b,
    }
}
