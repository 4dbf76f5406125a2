//! Sanitizes streamed text without waiting for its end.
//!
//! A pattern of the sanitizer may span several pieces, and a delimiter that is cut off gets marked, because
//! it could be completed later. So a possible delimiter is held back until it is decided, and so is a
//! character that others may combine with; everything else is shown at once.

use talon_sanitize::{Raw, Sanitized};

/// The first characters of delimiters.
const OPENERS: [char; 2] = ['<', '['];
/// Characters of delimiters besides letters; some delimiters spell their characters out.
const IN_DELIMITERS: [char; 12] = ['<', '>', '[', ']', '{', '}', '|', '&', '%', '\\', '`', '#'];
/// Words after an opener that may still be a name with attributes, as in the sanitizer.
const WORDS_OF_A_NAME: usize = 3;
/// More pending text than this is shown as it is: no delimiter is that long.
const MAX_PENDING_BYTES: usize = 256;

/// Takes pieces of text and returns sanitized pieces.
#[derive(Debug, Default)]
pub(super) struct StreamSanitizer {
    pending: String,
}

impl StreamSanitizer {
    /// Adds a piece; returns what can be shown now.
    pub(super) fn push(&mut self, piece: &str) -> Option<Sanitized> {
        self.pending.push_str(piece);
        let upto = ready_len(&self.pending);
        let rest = self.pending.split_off(upto);
        Self::neutralized(std::mem::replace(&mut self.pending, rest))
    }

    /// The end of the text: returns what is still pending.
    pub(super) fn finish(&mut self) -> Option<Sanitized> {
        Self::neutralized(std::mem::take(&mut self.pending))
    }

    fn neutralized(text: String) -> Option<Sanitized> {
        (!text.is_empty()).then(|| Raw::from(text).text())
    }
}

/// The length of the prefix that can be decided already.
fn ready_len(text: &str) -> usize {
    if text.len() > MAX_PENDING_BYTES {
        return text.len();
    }
    let mut upto = text.len();
    let word = |upto: usize| {
        text[..upto].char_indices().rfind(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
    };
    if text[word(upto)..].contains(IN_DELIMITERS) {
        upto = word(upto);
    }
    while let Some(at) = text[..upto].rfind(OPENERS) {
        if is_settled(&text[at..upto]) {
            break;
        }
        upto = word(at);
    }
    // Emoji are joined to what follows them.
    let joins = |c: char| !c.is_ascii() && !c.is_alphanumeric();
    text[..upto].trim_end_matches(joins).len()
}

/// Whether the text after an opener is decided: it was closed, or it has too many words to be a name.
fn is_settled(opened: &str) -> bool {
    let whole = opened.ends_with(char::is_whitespace);
    opened.contains(['>', ']']) || opened.split_whitespace().count() > WORDS_OF_A_NAME + usize::from(!whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(pieces: &[&str]) -> Vec<String> {
        let mut flow = StreamSanitizer::default();
        let mut all: Vec<String> =
            pieces.iter().map(|piece| flow.push(piece).unwrap_or_default().into_string()).collect();
        all.push(flow.finish().unwrap_or_default().into_string());
        all
    }

    #[test]
    fn plain_words_are_shown_at_once() {
        assert_eq!(shown(&["Hel", "lo, ", "日本"]), ["Hel", "lo, ", "日本", ""]);
    }

    // Promises: CLI-47
    #[test]
    fn what_may_become_a_delimiter_waits_for_its_end() {
        assert_eq!(shown(&["a <tool", "_call", "> b"]), ["a ", "", "<·tool_call> b", ""]);
        assert_eq!(shown(&["if x < ", "y && z ", "{"]), ["if x ", "< y && z ", "", "{"]);
    }

    #[test]
    fn joined_characters_stay_together() {
        assert_eq!(shown(&["a 👩", "\u{200d}", "💻 b"]), ["a ", "", "👩\u{200d}💻 b", ""]);
    }

    #[test]
    fn a_word_without_an_end_is_no_reason_to_wait_for_ever() {
        let long = format!("<{}", "a".repeat(MAX_PENDING_BYTES));
        assert_eq!(shown(&[&long]), [long, String::new()]);
    }

    proptest! {
        // Promises: CLI-47
        #[test]
        fn nothing_acts_on_a_terminal_and_no_letter_is_lost(pieces in proptest::collection::vec(piece(), 0..12)) {
            let all = shown(&pieces).concat();
            prop_assert!(all.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{all:?}");
            let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
            // An invisible character becomes a note, which adds letters.
            let noted: String = all.split("(U+").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).collect();
            prop_assert_eq!(letters(&noted), letters(&pieces.concat()));
        }
    }

    fn piece() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "<",
            "|",
            "im_start",
            "|>",
            "[",
            "plugin_output",
            "]",
            " ",
            "\n",
            "a",
            "Human:",
            "\u{1b}[2J",
            "\u{9b}m",
            "\u{202e}",
            "日本",
            "👩",
            "{\"x\": 1}",
        ])
    }
}
