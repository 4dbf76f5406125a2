//! Text of a model for the terminal, piece by piece.
//!
//! What a model says to a person is shown as it is, control syntax of models too. Only what acts on a terminal
//! becomes a visible note. That takes one character at a time, except for a line break of two.

use talon_sanitize::{Raw, TerminalText};

/// Takes pieces of text and returns what is shown of them.
#[derive(Debug, Default)]
pub(super) struct TerminalStream {
    /// The last piece ended in the first half of a line break, perhaps.
    pending_return: bool,
}

impl TerminalStream {
    /// Adds a piece; returns what can be shown now.
    pub(super) fn push(&mut self, piece: &str) -> Option<TerminalText> {
        let mut text = String::with_capacity(piece.len() + 1);
        if std::mem::take(&mut self.pending_return) {
            text.push('\r');
        }
        text.push_str(piece);
        if text.ends_with('\r') {
            text.pop();
            self.pending_return = true;
        }
        (!text.is_empty()).then(|| Raw::from(text).terminal_text())
    }

    /// The end of the text: returns what is still pending.
    pub(super) fn finish(&mut self) -> Option<TerminalText> {
        std::mem::take(&mut self.pending_return).then(|| Raw::from("\r").terminal_text())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(pieces: &[&str]) -> String {
        let mut stream = TerminalStream::default();
        let mut all: Vec<TerminalText> = pieces.iter().filter_map(|piece| stream.push(piece)).collect();
        all.extend(stream.finish());
        all.into_iter().map(TerminalText::into_string).collect()
    }

    // Promises: CLI-61
    #[test]
    fn control_syntax_of_models_is_shown_as_it_is() {
        for text in [
            "a <tool_call> b",
            "<|im_start|>user\n[/INST] [plugin_output]\n\nHuman: hi",
            "a 👩\u{200d}💻 b",
            "x\r\ny",
        ] {
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                assert_eq!(shown(&[&text[..at], &text[at..]]), text);
            }
        }
    }

    proptest! {
        // Promises: CLI-47
        #[test]
        fn nothing_acts_on_a_terminal_and_no_letter_is_lost(pieces in proptest::collection::vec(piece(), 0..12)) {
            let all = shown(&pieces);
            let breaks = all.replace("\r\n", "\n");
            prop_assert!(breaks.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{all:?}");
            prop_assert!(!all.contains('\u{202e}'), "{all:?}");
            let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
            // A character that becomes a note adds letters.
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
            "\r",
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
