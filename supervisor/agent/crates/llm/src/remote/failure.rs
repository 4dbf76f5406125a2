//! Failures of a request, which become a [`ProviderError`].

use std::error::Error;
use std::time::Duration;

use crate::key::{HIDDEN, Secret};
use crate::limits::{MAX_EVENT_BYTES, MAX_MESSAGE_BYTES, MAX_QUOTED_BYTES};
use crate::model::{ErrorClass, ProviderError};
use talon_error_chain::append_causes;

/// A failure without its provider's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: ErrorClass,
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, status: None, message: message.into(), retry_after: None }
    }

    /// The provider sent something that is no answer.
    pub(crate) fn unexpected(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Server, message)
    }

    /// A frame is malformed.
    pub(crate) fn unreadable(data: &str) -> Self {
        Self::unexpected(format!(
            "its answer cannot be read: {}; check that kind and base_url fit together",
            Quote(data)
        ))
    }

    /// The response is too large.
    pub(crate) fn too_large(what: &str, max_bytes: usize) -> Self {
        Self::unexpected(format!(
            "{what} is larger than the {max_bytes} bytes that are taken, so the connection was closed: ask for less at once"
        ))
    }

    /// The protocol has no vectors of texts.
    pub(crate) fn has_no_vectors() -> Self {
        Self::new(
            ErrorClass::Request,
            "it makes no vectors of texts: name a provider of the kind openai or ollama in models.embeddings",
        )
    }

    /// A frame has no end.
    pub(crate) fn too_long() -> Self {
        Self::too_large("one event of its answer", MAX_EVENT_BYTES)
    }

    /// The stream ended before the answer did.
    pub(crate) fn truncated() -> Self {
        Self::new(
            ErrorClass::Network,
            "its answer broke off in the middle: what came of it is not used; ask again, and look at a proxy in between if it \
             happens often",
        )
    }

    /// Every key rests.
    pub(crate) fn keys_cooling(rest: Duration) -> Self {
        let seconds = rest.as_secs().max(1);
        Self {
            retry_after: Some(rest),
            ..Self::new(
                ErrorClass::RateLimit,
                format!(
                    "it was not asked: it set a limit, and wants to be asked again in {seconds} s; wait, or add another key"
                ),
            )
        }
    }

    /// Every key was rejected before.
    pub(crate) fn refused_before() -> Self {
        Self::new(
            ErrorClass::Auth,
            "it was not asked: it refused each of its keys before; give it a key that holds, and reload",
        )
    }

    /// Adds which key was used, if there is one.
    pub(crate) fn with_key(mut self, place: &str) -> Self {
        let concerns_key =
            matches!(self.class, ErrorClass::Auth | ErrorClass::RateLimit | ErrorClass::Billing);
        if concerns_key && !place.is_empty() {
            self.message.push_str(&format!(" (the key in {place})"));
        }
        self
    }

    /// Makes the error of a provider: one line, bounded, and without secrets.
    pub(crate) fn into_error(self, provider: &str, secrets: &[Secret]) -> ProviderError {
        let message = redact(&self.message, secrets);
        ProviderError {
            provider: provider.to_owned(),
            class: self.class,
            status: self.status,
            message: line(&message, MAX_MESSAGE_BYTES),
            retry_after: self.retry_after,
        }
    }
}

/// The shortest prefix of a secret that is redacted. 8 characters: a shorter one only shows whose key it is
/// (`sk-proj-`).
const MIN_BEGINNING_CHARS: usize = 8;

/// Redacts these secrets, and long prefixes of them, since the sender or the agent may have truncated the
/// text in the middle of a key.
pub(crate) fn redact(text: &str, secrets: &[Secret]) -> String {
    let mut text = text.to_owned();
    let known = || secrets.iter().map(Secret::reveal).filter(|secret| !secret.is_empty());
    // Longer ones first: one secret may be the prefix of another.
    for secret in known() {
        text = text.replace(secret, HIDDEN);
    }
    for secret in known() {
        let Some((border, _)) = secret.char_indices().nth(MIN_BEGINNING_CHARS) else { continue };
        let beginning = &secret[..border];
        if !text.contains(beginning) {
            continue;
        }
        let mut shown = String::new();
        let mut left = text.as_str();
        while let Some(at) = left.find(beginning) {
            shown.push_str(&left[..at]);
            shown.push_str(HIDDEN);
            let same = left[at..].chars().zip(secret.chars()).take_while(|(a, b)| a == b);
            left = &left[at + same.map(|(c, _)| c.len_utf8()).sum::<usize>()..];
        }
        shown.push_str(left);
        text = shown;
    }
    text
}

/// A quotation of a provider's text: one line, truncated, and without the remains of a masked key.
pub(crate) struct Quote<'t>(pub(crate) &'t str);

impl std::fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Only the beginning of a long text is processed; a character has at most 4 bytes.
        let text: String = self.0.chars().take(MAX_QUOTED_BYTES * 4).collect();
        // Such as "sk-ab***wxyz": OpenAI shows the ends of a rejected key.
        let words = text.split_whitespace().map(|word| if word.contains("***") { HIDDEN } else { word });
        let text = words.collect::<Vec<_>>().join(" ");
        write!(f, "\"{}\"", line(&text, MAX_QUOTED_BYTES))
    }
}

/// One line without control characters, truncated between two characters.
fn line(text: &str, max_bytes: usize) -> String {
    let clean = |c: char| {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}') { ' ' } else { c }
    };
    let mut shown = String::new();
    for c in text.trim().chars().map(clean) {
        if shown.len() + c.len_utf8() + '…'.len_utf8() > max_bytes {
            shown.push('…');
            break;
        }
        shown.push(c);
    }
    shown
}

/// An error with its causes, but without the URL, which may contain a secret.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let text = append_causes(String::new(), error.source());
    if text.is_empty() { "no reason given".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_one_line_and_holds_no_key() {
        let said = "Incorrect API key\r\nprovided: sk-ab****wxyz.\u{1b}[2J";
        assert_eq!(Quote(said).to_string(), "\"Incorrect API key provided: [hidden]\"");
        let long = "ä".repeat(10_000);
        assert!(Quote(&long).to_string().len() <= MAX_QUOTED_BYTES + 2);
    }

    // Promises: AGENT-63
    #[test]
    fn a_key_that_a_quote_cuts_off_is_hidden_with_its_beginning() {
        let key = "sk-proj-0123456789abcdefghij";
        let secrets = [Secret::new("sk-other-key-of-mine"), Secret::new(key)];
        for before in 0..MAX_QUOTED_BYTES {
            let said = format!("{} {key} is no key", "x".repeat(before));
            let failure = Failure::unexpected(format!("it says {}", Quote(&said)));
            let message = failure.into_error("p", &secrets).message;
            assert!(!message.contains("sk-proj-0"), "{before}: {message}");
        }
        // Redaction at the end of the text, and of a key that the sender truncated.
        let long = Failure::unexpected(format!("{}{key}", "x".repeat(MAX_MESSAGE_BYTES - 12)));
        assert!(!long.into_error("p", &secrets).message.contains("sk-proj-"));
        assert_eq!(redact("sk-proj-0123 and sk-proj-012345, sk-p", &secrets), "[hidden] and [hidden], sk-p");
        assert_eq!(redact("short", &[Secret::new("shorter"), Secret::new("")]), "short");
    }

    #[test]
    fn an_error_holds_no_key_and_is_bounded() {
        let failure = Failure::unexpected(format!("no {} and {}", "sk-secret", "x".repeat(5000)));
        let error = failure.into_error("p", &[Secret::new("sk-secret")]);
        assert!(error.message.starts_with("no [hidden] and x"), "{error}");
        assert!(error.message.len() <= MAX_MESSAGE_BYTES, "{}", error.message.len());
    }
}
