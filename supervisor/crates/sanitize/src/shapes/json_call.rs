//! JSON that a client takes for a call: the keys `tool_calls`, `function_call`, `functionCall`, and `type`
//! with the value `function`, `tool_use` or `function_call` in an object whose other keys make it a call.

use super::object::{MAX_OBJECT, Reader, Siblings};
use super::{Name, TextEnd, Verdict};
use crate::family_counts::Family;
use crate::names;
use crate::skeleton::Window;
use crate::unit::END;

/// How many bytes all sibling searches in one text may read, so that the work stays linear.
pub(crate) struct Budget(usize);

impl Budget {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.len().saturating_mul(4).saturating_add(4 * MAX_OBJECT))
    }
}

/// Judges a `"`.
pub(crate) fn json_call(window: &mut Window<'_, '_>, ending: TextEnd, budget: &mut Budget) -> Verdict {
    let at = window.end_of(0);
    let mark = Verdict::Mark { at, family: Family::JsonCall };
    let open = ending == TextEnd::Open;
    let start = window.skip_space(1);
    let key = Name::read(window, start, true);
    let quote = window.skip_space(key.next);
    match window.get(quote) {
        b'"' => {}
        END if open
            && key.len > 0
            && (names::may_become_call_key(key.as_str()) || "type".starts_with(key.as_str())) =>
        {
            return mark;
        }
        _ => return Verdict::Clean,
    }
    let is_type = key.as_str() == "type";
    if !is_type && !names::is_call_key(key.as_str()) {
        return Verdict::Clean;
    }
    let colon = window.skip_space(quote + 1);
    match window.get(colon) {
        b':' => {}
        END if open => return mark,
        _ => return Verdict::Clean,
    }
    let value = window.skip_space(colon + 1);
    match window.get(value) {
        END if open => return mark,
        b'{' if !is_type && is_schema(window.text, window.from, window.end_of(value), budget) => {
            return Verdict::Clean;
        }
        b'[' | b'{' if !is_type => return mark,
        b'"' if !is_type => return mark,
        b'"' => {}
        _ => return Verdict::Clean,
    }
    let at = window.end_of(value);
    let mark = Verdict::Mark { at, family: Family::JsonCall };
    let start = window.skip_space(value + 1);
    let kind = Name::read(window, start, true);
    let close = window.skip_space(kind.next);
    match window.get(close) {
        b'"' if names::is_call_type(kind.as_str()) => {}
        END if open => return mark,
        _ => return Verdict::Clean,
    }
    let (before, after) = (window.from, window.end_of(close));
    // Schemas and syntax trees have functions and their calls too; the other types exist in calls only.
    let certain = !matches!(kind.as_str(), "function" | "function_call");
    // A sentence about such keys: in JSON no word follows a value.
    let beyond = window.skip_space(close + 1);
    if !certain && window.get(close + 1) == b' ' && window.get(beyond).is_ascii_alphabetic() {
        return Verdict::Clean;
    }
    if !certain && is_no_call(window.text, before, after, budget) { Verdict::Clean } else { mark }
}

/// Whether the object around `"type": "…"` is provably something else. If it is not strict JSON, or not
/// within the bounds, that is not proven.
fn is_no_call(text: &str, before: usize, after: usize, budget: &mut Budget) -> bool {
    let Some(own) = escapes_before(text.as_bytes(), before) else { return false };
    let before = before - own;
    let mut siblings = Siblings::default();
    let mut reader = Reader::new(text.as_bytes(), own, &mut budget.0);
    let complete =
        reader.forward(after, &mut siblings).is_some() && reader.backward(before, &mut siblings).is_some();
    complete && !siblings.may_make_call()
}

/// Whether the object that begins in front of `inside` is a schema, so that its key, whose quote is at
/// `quote`, is the name of a property: `"tool_calls": {"type": "array", …}`.
fn is_schema(text: &str, quote: usize, inside: usize, budget: &mut Budget) -> bool {
    let bytes = text.as_bytes();
    let Some(own) = escapes_before(bytes, quote).filter(|_| bytes[inside - 1] == b'{') else { return false };
    let mut siblings = Siblings::default();
    Reader::new(bytes, own, &mut budget.0).forward(inside, &mut siblings).is_some() && siblings.make_schema()
}

/// JSON inside a JSON string has its quotes behind backslashes: how many stand in front of this quote. As
/// many of them as here delimit strings. None if that is no quote, or nested too deeply.
fn escapes_before(bytes: &[u8], quote: usize) -> Option<usize> {
    /// JSON in a string in a string in a string: deeper nesting proves nothing.
    const MAX_ESCAPES: usize = 7;
    let own = bytes[..quote].iter().rev().take(MAX_ESCAPES + 1).take_while(|&&byte| byte == b'\\').count();
    (bytes[quote] == b'"' && own <= MAX_ESCAPES).then_some(own)
}
