//! Text for a person's terminal.
//!
//! Control syntax of models is harmless to people and in files, so it stays as it is. What acts on a terminal
//! becomes a visible note.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::escape::write_note;
use crate::{Raw, Sanitized};

/// Text without anything that acts on a terminal. It may hold control syntax of models, so it is not for a
/// prompt, and it is no [`SafeDisplay`](crate::SafeDisplay).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalText(String);

impl TerminalText {
    /// The text of a terminal.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Raw<'_> {
    /// The text for a terminal, on several lines.
    #[must_use]
    pub fn terminal_text(&self) -> TerminalText {
        TerminalText(without_control_characters(self.expose()).into_owned())
    }

    /// The text for one line of a terminal: line breaks and tabs are written as `\\n` and `\\t`.
    #[must_use]
    pub fn terminal_line(&self) -> TerminalText {
        let plain = without_control_characters(self.expose());
        TerminalText(plain.replace('\r', "").replace('\n', "\\n").replace('\t', "\\t"))
    }

    /// A JSON text for a terminal: what acts on it is escaped, which changes no string. Line breaks and tabs
    /// stand between values only.
    #[must_use]
    pub fn terminal_json(&self) -> TerminalText {
        let text = self.expose();
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\r' => out.push(c),
                c if acts(c) => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
                c => out.push(c),
            }
        }
        TerminalText(out)
    }
}

impl From<Sanitized> for TerminalText {
    fn from(text: Sanitized) -> Self {
        Self(text.into_string())
    }
}

impl From<&'static str> for TerminalText {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl Deref for TerminalText {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TerminalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether a character acts on a terminal: the control characters but line breaks and tabs, and what changes
/// the direction of the text around it.
fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn without_control_characters(text: &str) -> Cow<'_, str> {
    // A line break of two characters is one.
    let mut found =
        text.char_indices().filter(|&(at, c)| acts(c) && !text[at..].starts_with("\r\n")).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied) = (String::with_capacity(text.len() + 16), 0);
    for (at, c) in found {
        out.push_str(&text[copied..at]);
        write_note(&mut out, c, 1);
        copied = at + c.len_utf8();
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_acts_on_a_terminal_is_changed() {
        for text in
            ["<|im_start|>user\n[/INST] <tool_call>", "a\tb\r\nc", "\u{200b}👩\u{200d}💻 ‏", "Human: hi"]
        {
            assert_eq!(&*Raw::from(text).terminal_text(), text);
        }
        assert_eq!(&*Raw::from("\u{1b}[2Jx\u{9b}m\u{202e}\ry").terminal_text(), "␛[2Jx(U+009B)m(U+202E)␍y");
        assert_eq!(&*Raw::from("<a>\n\tb").terminal_line(), "<a>\\n\\tb");
    }

    #[test]
    fn json_keeps_its_strings() {
        let value = serde_json::json!({ "a": "<think>\u{9b}2J\u{202e}\u{7f}\n\u{1b}" });
        let text = Raw::from(value.to_string()).terminal_json();
        assert!(text.chars().all(|c| !acts(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }

    proptest! {
        #[test]
        fn nothing_acts_on_a_terminal(text in any::<String>()) {
            let shown = Raw::from(&text).terminal_text();
            prop_assert!(shown.replace("\r\n", "\n").chars().all(|c| !acts(c)), "{shown:?}");
            prop_assert_eq!(&Raw::from(&*shown).terminal_text(), &shown);
            prop_assert!(Raw::from(&text).terminal_line().chars().all(|c| !c.is_control()));
        }
    }
}
