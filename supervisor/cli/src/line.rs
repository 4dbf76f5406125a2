//! One line for a terminal: sanitized pieces with optional colours.

use std::fmt::Display;

use anstyle::Style;
use talon_sanitize::{Raw, SafeDisplay, Sanitized, TerminalText, sanitized};

/// Pieces of a line: sanitized text, and what a model wrote, which is shown as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pieces: Vec<(Option<Style>, Piece)>,
}

#[derive(Debug, Clone)]
enum Piece {
    Sanitized(Sanitized),
    Terminal(TerminalText),
}

impl Piece {
    fn is_sanitized(&self) -> bool {
        matches!(self, Self::Sanitized(_))
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Sanitized(text) => text,
            Self::Terminal(text) => text,
        }
    }
}

impl Line {
    /// A line that starts with styled text.
    pub(crate) fn styled(style: Style, text: impl SafeDisplay) -> Self {
        Self::default().and_styled(style, text)
    }

    /// Appends text.
    pub(crate) fn and(mut self, text: impl SafeDisplay) -> Self {
        self.pieces.push((None, Piece::Sanitized(sanitized!("{}", text))));
        self
    }

    /// Appends styled text.
    pub(crate) fn and_styled(mut self, style: Style, text: impl SafeDisplay) -> Self {
        self.pieces.push((Some(style), Piece::Sanitized(sanitized!("{}", text))));
        self
    }

    /// Appends what a model wrote, as it is.
    pub(crate) fn and_text(mut self, text: TerminalText) -> Self {
        self.pieces.push((None, Piece::Terminal(text)));
        self
    }

    /// The line as text. If sanitized pieces form control syntax together, their colours are dropped, and they
    /// are sanitized as a whole.
    pub(crate) fn render(&self, color: bool) -> String {
        let mut out = String::new();
        for run in self.pieces.chunk_by(|a, b| a.1.is_sanitized() && b.1.is_sanitized()) {
            let plain: String = run.iter().map(|(_, piece)| piece.as_str()).collect();
            if !run.iter().all(|(_, piece)| piece.is_sanitized()) {
                out.push_str(&plain);
                continue;
            }
            let sanitized = Raw::from(&plain).text();
            if sanitized != plain || !color {
                out.push_str(&sanitized);
            } else {
                out.extend(run.iter().map(|(style, piece)| paint(*style, piece.as_str())));
            }
        }
        out
    }
}

impl<S: SafeDisplay> From<S> for Line {
    fn from(text: S) -> Self {
        Self::default().and(text)
    }
}

/// Sanitizes untrusted text to one line: a field of an answer, an error, a path.
pub(crate) fn sanitized_line(text: impl Display) -> Sanitized {
    Raw::of(text).line()
}

/// Wraps a text in escape sequences, the only ones that this program writes.
pub(crate) fn paint(style: Option<Style>, text: &str) -> String {
    match style {
        Some(style) => format!("{style}{text}{style:#}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOLD: Style = Style::new().bold();

    #[test]
    fn colour_is_there_only_if_it_is_wanted() {
        let line = Line::styled(BOLD, "talon:").and(" ").and(3);
        assert_eq!(line.render(false), "talon: 3");
        assert_eq!(line.render(true), "\u{1b}[1mtalon:\u{1b}[0m 3");
    }

    proptest! {
        #[test]
        fn pieces_make_no_token_together(pieces in proptest::collection::vec(piece(), 1..5)) {
            let line = pieces.iter().fold(Line::default(), |line, piece| {
                line.and_styled(BOLD, Raw::from(*piece).line())
            });
            let colored = line.render(true).replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
            prop_assert_eq!(&colored, &line.render(false));
            prop_assert!(talon_sanitize::Sanitizer::default().is_clean(&colored), "{:?}", colored);
        }
    }

    fn piece() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "<", "|", "im_start", "|>", "[", "]", "plugin", "_output", "]", "tool", "_call", ">", "Human",
            ":", "\u{1b}", " ", "a", "/",
        ])
    }
}
