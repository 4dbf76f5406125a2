//! Thoughts that a server leaves in the text of an answer, between `<think>` and `</think>`.
//!
//! Only at its beginning: further behind, a model may well write about these words.

/// The words that servers leave: those of DeepSeek's and Qwen's templates, and of Gemini's compatible interface.
const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Thought(String),
    Text(String),
}

/// Splits a text that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct ThinkTags {
    position: Position,
    /// What may still become a tag; bounded by the longest tag, or by white space at the beginning.
    held: String,
}

#[derive(Debug, Default, Clone, Copy)]
enum Position {
    #[default]
    Beginning,
    /// Inside, until this word.
    Thought(&'static str),
    /// The line breaks after thoughts belong to no text.
    Behind,
    Text,
}

impl ThinkTags {
    /// A splitter that leaves everything as it is.
    pub(crate) fn none() -> Self {
        Self { position: Position::Text, held: String::new() }
    }

    /// Takes more of the text.
    pub(crate) fn feed(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.held.push_str(text);
        while !self.held.is_empty() && self.step(&mut pieces) {}
        pieces
    }

    /// The text is at its end: what was held back is what it looks like.
    pub(crate) fn end(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.held);
        match self.position {
            _ if rest.is_empty() => None,
            Position::Thought(_) => Some(Piece::Thought(rest)),
            Position::Behind if rest.trim().is_empty() => None,
            Position::Beginning | Position::Behind | Position::Text => Some(Piece::Text(rest)),
        }
    }

    /// Whether more of what is held can be decided.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.position {
            Position::Beginning => {
                let start = self.held.trim_start();
                if let Some((open, close)) = TAGS.iter().find(|(open, _)| start.starts_with(open)) {
                    self.held = start[open.len()..].to_owned();
                    self.position = Position::Thought(close);
                    return true;
                }
                let blank = self.held.len() - start.len();
                let is_open = blank <= MAX_BLANK && TAGS.iter().any(|(open, _)| open.starts_with(start));
                if !is_open {
                    self.position = Position::Text;
                }
                !is_open
            }
            Position::Thought(close) => {
                if let Some((thought, rest)) = self.held.split_once(close) {
                    push(pieces, Piece::Thought, thought);
                    self.held = rest.to_owned();
                    self.position = Position::Behind;
                    return true;
                }
                // The longest end that may become the closing word stays.
                let kept = (0..close.len()).rev().find(|&length| self.held.ends_with(&close[..length]));
                let decided = self.held.len() - kept.unwrap_or(0);
                push(pieces, Piece::Thought, &self.held[..decided]);
                self.held.drain(..decided);
                false
            }
            Position::Behind => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    self.position = Position::Text;
                }
                !self.held.is_empty()
            }
            Position::Text => {
                push(pieces, Piece::Text, &self.held);
                self.held.clear();
                false
            }
        }
    }
}

/// The white space before a tag. Templates put a line break there.
const MAX_BLANK: usize = 16;

fn push(pieces: &mut Vec<Piece>, piece: impl Fn(String) -> Piece, text: &str) {
    if !text.is_empty() {
        pieces.push(piece(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut tags = ThinkTags::default();
        let mut all: Vec<_> = pieces.iter().flat_map(|piece| tags.feed(piece)).collect();
        all.extend(tags.end());
        let (mut thought, mut text) = (String::new(), String::new());
        for piece in all {
            match piece {
                Piece::Thought(more) => thought.push_str(&more),
                Piece::Text(more) => text.push_str(&more),
            }
        }
        (thought, text)
    }

    // Promises: AGENT-118
    #[test]
    fn thoughts_at_the_beginning_are_thoughts() {
        for (whole, thought, text) in [
            ("<think>So.</think>\n\nYes.", "So.", "Yes."),
            ("\n<think>\n</think>\n\nYes.", "\n", "Yes."),
            ("<thought>So.</thought>Yes.", "So.", "Yes."),
            ("<thinking>a < b</thinking>Yes.", "a < b", "Yes."),
            ("Yes <think>no</think>.", "", "Yes <think>no</think>."),
            ("<thin", "", "<thin"),
            ("<table>", "", "<table>"),
            ("  spaced", "", "  spaced"),
            ("<think>cut off", "cut off", ""),
            ("<think>cut off</thi", "cut off</thi", ""),
            ("<think></think>\n", "", ""),
            ("", "", ""),
        ] {
            let expected = (thought.to_owned(), text.to_owned());
            assert_eq!(split(&[whole]), expected, "{whole:?}");
            let letters: Vec<String> = whole.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(split(&letters), expected, "{whole:?} letter by letter");
        }
    }

    proptest! {
        #[test]
        fn pieces_change_nothing(parts in prop::collection::vec("(<think>|</think>|<|think|>|/|a|ä|\\n| ){0,4}", 0..8)) {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            prop_assert_eq!(split(&parts), split(&[&parts.concat()]));
        }
    }
}
