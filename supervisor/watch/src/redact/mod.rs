//! Secrets in texts: found, and replaced before anything leaves this machine's user.
//!
//! The rules know formats that providers publish, private keys, and values that are assigned to names which
//! sound like secrets. They err on the side of replacing.

mod rules;
mod value;

use std::borrow::Cow;

pub(crate) use rules::Secret;

/// A text without secrets, and how many there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Redacted {
    pub(crate) text: String,
    pub(crate) count: u32,
}

/// Replaces all secrets of `text` by `[redacted: RULE]`.
pub(crate) fn redact(text: &str) -> Redacted {
    replace(text, false)
}

/// The same, where a secret of several lines leaves as many lines: line numbers stay what they are.
pub(crate) fn redact_keeping_lines(text: &str) -> Redacted {
    replace(text, true)
}

fn replace(text: &str, keeps_lines: bool) -> Redacted {
    let mut found = rules::find(text);
    found.sort_by_key(|secret| (secret.start, usize::MAX - secret.end));
    let mut out = String::with_capacity(text.len());
    let (mut at, mut count) = (0, 0);
    for secret in &found {
        // One that begins inside of another is replaced with it, and so is what sticks out of that one.
        if secret.end <= at {
            continue;
        }
        if secret.start >= at {
            out.push_str(&text[at..secret.start]);
            out.push_str(&format!("[redacted: {}]", secret.rule));
            count += 1;
        }
        if keeps_lines {
            let replaced = &text[at.max(secret.start)..secret.end];
            out.push_str(&"\n".repeat(replaced.matches('\n').count()));
        }
        at = secret.end;
    }
    out.push_str(&text[at..]);
    Redacted { text: out, count }
}

/// The secrets of a text, in the order of the rules.
pub(crate) fn secrets(text: &str) -> Vec<Secret> {
    rules::find(text)
}

/// The text of bytes that should be text, without a byte order mark.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

#[cfg(test)]
mod tests;
