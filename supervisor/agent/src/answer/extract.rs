//! Extracts JSON from text.

use serde_json::Value;

/// The most JSON values of one answer that are examined. The answer is one of them; models quote few others
/// before it.
const MAX_VALUES: usize = 32;

/// The whole text if it is JSON; otherwise its balanced objects and lists that are JSON, in order; each with the
/// text that it was read from. Linear in
/// the text, except for text that only looks like JSON, which [`MAX_VALUES`] bounds as well.
pub(super) fn values(text: &str) -> Vec<(&str, Value)> {
    if let Ok(whole) = serde_json::from_str(text) {
        return vec![(text, whole)];
    }
    let mut found = Vec::new();
    let mut from = 0;
    for _ in 0..MAX_VALUES {
        let Some(start) = text[from..].find(['{', '[']).map(|at| from + at) else { break };
        match balanced(&text[start..]).and_then(|length| Some((length, text.get(start..start + length)?))) {
            Some((length, piece)) => match serde_json::from_str(piece) {
                Ok(value) => {
                    found.push((piece, value));
                    from = start + length;
                }
                // Brackets without JSON; there may be JSON inside.
                Err(_) => from = start + 1,
            },
            None => from = start + 1,
        }
    }
    found
}

/// The length of the balanced piece at the start of the text. Brackets in strings do not count.
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
