//! One line for a terminal: sanitized pieces with optional colours.

use std::fmt::Display;

use anstyle::Style;
use talon_sanitize::{Raw, SafeDisplay, Sanitized, sanitized};

/// Pieces of a line. Only sanitized text can be added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pieces: Vec<(Option<Style>, Sanitized)>,
}

impl Line {
    /// A line that starts with styled text.
    pub(crate) fn styled(style: Style, text: impl SafeDisplay) -> Self {
        Self::default().and_styled(style, text)
    }

    /// Appends text.
    pub(crate) fn and(mut self, text: impl SafeDisplay) -> Self {
        self.pieces.push((None, sanitized!("{}", text)));
        self
    }

    /// Appends styled text.
    pub(crate) fn and_styled(mut self, style: Style, text: impl SafeDisplay) -> Self {
        self.pieces.push((Some(style), sanitized!("{}", text)));
        self
    }

    /// The line as text. If pieces form control syntax together, their colours are dropped, and the line is
    /// sanitized as a whole.
    pub(crate) fn render(&self, color: bool) -> String {
        let plain: String = self.pieces.iter().map(|(_, text)| text.as_str()).collect();
        let sanitized = Raw::from(&plain).text();
        if sanitized != plain || !color {
            return sanitized.into_string();
        }
        self.pieces.iter().map(|(style, text)| paint(*style, text)).collect()
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
