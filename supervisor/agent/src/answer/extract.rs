//! JSON in the middle of words.

use serde_json::Value;

/// The most JSON values of one answer that are looked at. An answer has one; what a model quotes before it are a few.
const MAX_VALUES: usize = 32;

/// The whole text if it is JSON; otherwise the balanced objects and lists in it that are JSON, in their order. Linear in the text
/// but for what looks like JSON and is none, which is bounded by [`MAX_VALUES`], too.
pub(super) fn values(text: &str) -> Vec<Value> {
    if let Ok(whole) = serde_json::from_str(text) {
        return vec![whole];
    }
    let mut found = Vec::new();
    let mut from = 0;
    for _ in 0..MAX_VALUES {
        let Some(start) = text[from..].find(['{', '[']).map(|at| from + at) else { break };
        match balanced(&text[start..]).and_then(|length| Some((length, text.get(start..start + length)?))) {
            Some((length, piece)) => match serde_json::from_str(piece) {
                Ok(value) => {
                    found.push(value);
                    from = start + length;
                }
                // Words in brackets; there may be JSON within.
                Err(_) => from = start + 1,
            },
            None => from = start + 1,
        }
    }
    found
}

/// How long the balanced piece is that the text begins with. Brackets in strings do not count.
fn balanced(text: &str) -> Option<usize> {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
