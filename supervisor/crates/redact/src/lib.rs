//! Secrets in texts: found, and replaced before a text is sent on.
//!
//! The rules know formats that providers publish, private keys, and values that are assigned to names which
//! sound like secrets. They err on the side of replacing. The shells' reporter and the watcher use them before
//! anything leaves a person's processes, and the agent again, since it does not trust either.

mod rules;
mod value;

pub use rules::Secret;

/// A text without secrets, and how many there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redacted {
    /// The text, in which `[redacted: RULE]` stands for each secret. It may be longer than the original.
    pub text: String,
    /// How many were replaced.
    pub count: u32,
}

/// Replaces all secrets of `text` by `[redacted: RULE]`. What it made stays as it is if it is redacted again.
#[must_use]
pub fn redact(text: &str) -> Redacted {
    replace(text, false)
}

/// The same, where a secret of several lines leaves as many lines: line numbers stay what they are.
#[must_use]
pub fn redact_keeping_lines(text: &str) -> Redacted {
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

/// The secrets of a text, in the order of the rules; they may overlap.
#[must_use]
pub fn secrets(text: &str) -> Vec<Secret> {
    rules::find(text)
}

#[cfg(test)]
mod tests;
