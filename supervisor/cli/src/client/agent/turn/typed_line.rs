//! What a person types while a turn runs, from the bytes of the terminal.

use std::collections::VecDeque;

use talon_sanitize::{Raw, TerminalText};
use unicode_width::UnicodeWidthChar as _;

/// The longest message; the agent's own limit is the same. What is typed beyond is not taken.
const MAX_BYTES: usize = 256 << 10;
/// Messages that wait for the end of the turn: more than a person has in mind.
const MAX_QUEUED: usize = 16;
const PASTE_BEGIN: &[u8] = b"[200~";
const PASTE_END: &[u8] = b"[201~";
/// Longer sequences are no keys.
const MAX_SEQUENCE: usize = 16;

/// What was typed during a turn.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct TypedAhead {
    /// Whole messages, in order.
    pub(crate) queued: VecDeque<String>,
    /// What is not finished.
    pub(crate) draft: String,
}

impl TypedAhead {
    /// Puts whole messages back into the draft: after a turn that was cancelled they may no longer fit.
    pub(crate) fn unqueue(&mut self) {
        let draft = std::mem::take(&mut self.draft);
        let all: Vec<String> = self.queued.drain(..).chain((!draft.is_empty()).then_some(draft)).collect();
        self.draft = all.join("\n");
    }
}

/// A line with the few keys that it needs: letters, backspace, Ctrl-U, Ctrl-W, Enter, and Ctrl-D where it is empty.
#[derive(Debug, Default)]
pub(super) struct TypedLine {
    typed: TypedAhead,
    /// The beginning of a letter of several bytes.
    letter: Vec<u8>,
    /// The sequence of a special key so far, without its escape.
    sequence: Option<Vec<u8>>,
    is_pasting: bool,
}

impl TypedLine {
    pub(super) fn new(typed: TypedAhead) -> Self {
        Self { typed, ..Self::default() }
    }

    pub(super) fn into_typed(self) -> TypedAhead {
        self.typed
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.push_byte(*byte));
    }

    fn push_byte(&mut self, byte: u8) {
        if let Some(mut sequence) = self.sequence.take() {
            sequence.push(byte);
            let is_over = sequence.len() > 1 && matches!(byte, b'@'..=b'~')
                || sequence.len() == 1 && byte != b'[' && byte != b'O';
            match &*sequence {
                PASTE_BEGIN => self.is_pasting = true,
                PASTE_END => self.is_pasting = false,
                _ if is_over || sequence.len() >= MAX_SEQUENCE => {}
                _ => self.sequence = Some(sequence),
            }
            return;
        }
        let draft = &mut self.typed.draft;
        match byte {
            0x1b => self.sequence = Some(Vec::new()),
            b'\r' | b'\n' if self.is_pasting => self.take_letter('\n'),
            b'\r' | b'\n' => self.enter(),
            0x7f | 0x08 => drop(draft.pop()),
            // Ctrl-U
            0x15 => draft.clear(),
            // Ctrl-W
            0x17 => {
                let mut letters = draft.trim_end().char_indices();
                let space = letters.rfind(|(_, letter)| letter.is_whitespace());
                let kept = space.map_or(0, |(at, letter)| at + letter.len_utf8());
                draft.truncate(kept);
            }
            // Ctrl-D leaves when the turn is over, as it does in the editor.
            0x04 if draft.is_empty() => self.queue("/exit".to_owned()),
            b'\t' => self.take_letter('\t'),
            0..0x20 => {}
            _ => self.letter_byte(byte),
        }
    }

    fn letter_byte(&mut self, byte: u8) {
        self.letter.push(byte);
        match std::str::from_utf8(&self.letter) {
            Ok(text) => {
                let letter = text.chars().next();
                self.letter.clear();
                letter.into_iter().for_each(|letter| self.take_letter(letter));
            }
            // More bytes may complete it.
            Err(error) if error.error_len().is_none() => {}
            Err(_) => self.letter.clear(),
        }
    }

    fn take_letter(&mut self, letter: char) {
        if self.typed.draft.len() + letter.len_utf8() <= MAX_BYTES {
            self.typed.draft.push(letter);
        }
    }

    fn enter(&mut self) {
        if !self.typed.draft.trim().is_empty() && self.typed.queued.len() < MAX_QUEUED {
            let message = std::mem::take(&mut self.typed.draft);
            self.queue(message);
        }
    }

    fn queue(&mut self, message: String) {
        if self.typed.queued.len() < MAX_QUEUED {
            self.typed.queued.push_back(message);
        }
    }

    /// The line for the terminal: how many messages wait, and the end of what is typed.
    pub(super) fn shown(&self, columns: usize) -> TerminalText {
        let prompt = match self.typed.queued.len() {
            0 => "> ".to_owned(),
            waiting => format!("[{waiting} queued] > "),
        };
        let room = columns.saturating_sub(prompt.len());
        let text = Raw::from(self.tail()).terminal_line();
        let mut width = 0;
        let fits = |(_, letter): &(usize, char)| {
            width += letter.width().unwrap_or_default();
            width <= room
        };
        let from = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(at, _)| at);
        let line: String = prompt.chars().take(columns).chain(text[from..].chars()).collect();
        Raw::from(line).terminal_line()
    }

    /// More of the draft than any row has, so that a long one is not copied with each key.
    fn tail(&self) -> &str {
        const LONGEST_ROW_BYTES: usize = 4 << 10;
        let draft = &self.typed.draft;
        let mut from = draft.len().saturating_sub(LONGEST_ROW_BYTES);
        while !draft.is_char_boundary(from) {
            from += 1;
        }
        &draft[from..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(keys: &str) -> TypedLine {
        let mut line = TypedLine::default();
        line.push(keys.as_bytes());
        line
    }

    // Promises: CLI-72
    #[test]
    fn keys_edit_the_line_and_enter_queues_it() {
        for (keys, queued, draft) in [
            ("Helo\u{7f}lo", &[] as &[&str], "Hello"),
            ("one\rtwo\nthr", &["one", "two"], "thr"),
            ("a b\u{17}c", &[], "a c"),
            ("a\u{a0}b\u{17}c", &[], "a\u{a0}c"),
            ("gone\u{15}", &[], ""),
            ("日本\u{7f}", &[], "日"),
            ("\u{1b}[A\u{1b}[1;5Cx\u{1b}OP\u{1b}by", &[], "xy"),
            ("\u{1b}[200~one\rtwo\u{1b}[201~\r", &["one\ntwo"], ""),
            (" \r\r", &[], " "),
            ("\u{4}", &["/exit"], ""),
            ("x\u{4}", &[], "x"),
        ] {
            let all = typed(keys).into_typed();
            assert_eq!(
                (all.queued.iter().map(String::as_str).collect::<Vec<_>>(), &*all.draft),
                (queued.to_vec(), draft)
            );
        }
    }

    #[test]
    fn what_is_typed_is_bounded() {
        let mut all = typed("one\rtwo").into_typed();
        all.unqueue();
        assert_eq!((all.queued.len(), &*all.draft), (0, "one\ntwo"));
        let all = typed(&("x\r".repeat(100) + &"y".repeat(MAX_BYTES + 9))).into_typed();
        assert_eq!((all.queued.len(), all.draft.len()), (MAX_QUEUED, MAX_BYTES));
    }

    #[test]
    fn the_end_of_a_long_line_is_shown() {
        assert_eq!(&*typed("short").shown(20), "> short");
        assert_eq!(&*typed("0123456789").shown(8), "> 456789");
        assert_eq!(&*typed("日本語").shown(6), "> 本語");
        assert_eq!(&*typed("one\rtwo").shown(40), "[1 queued] > two");
        assert_eq!(&*typed("\u{1b}[200~a\rb\u{1b}[201~").shown(40), "> a\\nb");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_fit_the_row(bytes in proptest::collection::vec(any::<u8>(), 0..200), columns in 0_usize..60) {
            let mut line = TypedLine::default();
            line.push(&bytes);
            prop_assert!(unicode_width::UnicodeWidthStr::width(&*line.shown(columns)) <= columns);
        }
    }
}
