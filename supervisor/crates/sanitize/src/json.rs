//! Rewrites JSON and keeps its shape: only string tokens are rewritten, everything between them is copied.

use std::borrow::Cow;

use crate::candidates::Candidates;
use crate::prefilter;

/// How large structured content may be, in bytes: as much as one message of the transport may hold by
/// default.
pub const MAX_JSON_BYTES: usize = 8 << 20;

/// Whether the text is one JSON value within the limits, with no key twice in an object.
pub(crate) fn is_valid(json: &str) -> bool {
    json.len() <= MAX_JSON_BYTES && talon_strict_json::check(json).is_ok()
}

/// Which strings [`rewrite`] passes to `sanitize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringFilter {
    /// Every one.
    All,
    /// Those in which some shape could begin. Most strings are short, and scanning each separately would cost
    /// more than finding the candidates in the whole text.
    Suspicious,
}

/// Rewrites the strings of valid JSON, keys too. `sanitize` gets each one decoded.
pub(crate) fn rewrite<'t>(
    json: &'t str,
    strings: StringFilter,
    mut sanitize: impl FnMut(&str) -> Option<String>,
) -> Cow<'t, str> {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    let mut candidates = Candidates::new(bytes);
    // In valid JSON every quote outside a string begins one.
    while let Some(open) = memchr::memchr(b'"', &bytes[at..]).map(|found| at + found) {
        let (close, escapes) = closing_quote(bytes, open + 1);
        at = close + 1;
        // Escapes are only decoded later, so a string with one counts. The closing quote behind a string
        // cannot begin anything that the end of the text could not.
        if strings == StringFilter::Suspicious
            && !escapes
            && candidates.next(open + 1).is_none_or(|candidate| candidate >= close)
            && !prefilter::may_begin_turn(bytes, open + 1)
        {
            continue;
        }
        let raw = &json[open + 1..close];
        let decoded = if escapes {
            match serde_json::from_str::<String>(&json[open..at]) {
                Ok(decoded) => Cow::Owned(decoded),
                Err(_) => continue,
            }
        } else {
            Cow::Borrowed(raw)
        };
        if let Some(clean) = sanitize(&decoded) {
            out.push_str(&json[copied..open]);
            write_string(&mut out, &clean);
            copied = at;
        }
        if at >= bytes.len() {
            break;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

/// The closing quote, or the end: valid JSON has one. And whether there are backslashes in front of it.
fn closing_quote(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let begin = at;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + found] == b'"' {
            return (at + found, at > begin);
        }
        at += found + 2;
    }
    (bytes.len().saturating_sub(1), at > begin)
}

fn write_string(out: &mut String, text: &str) {
    use std::fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' => {
                let written = write!(out, "\\u{:04x}", u32::from(c));
                debug_assert!(written.is_ok());
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
