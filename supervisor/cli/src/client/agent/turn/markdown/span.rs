//! A piece of text with its style.

use anstyle::{AnsiColor, Style};
use talon_sanitize::{Raw, TerminalText};

const DIM: Style = Style::new().dimmed();
const MARKER: Style = AnsiColor::Cyan.on_default();
const LINK: Style = Style::new().underline();

/// A piece of text with its style.
#[derive(Debug, Clone)]
pub(in crate::client::agent::turn) struct Span {
    pub(in crate::client::agent::turn) text: TerminalText,
    pub(in crate::client::agent::turn) style: Option<Style>,
    /// Whether it is a URL, which links to itself: what is opened is what is shown.
    pub(in crate::client::agent::turn) is_link: bool,
}

impl Span {
    /// The text was sanitized before, so this changes nothing in it.
    pub(super) fn new(text: &str, style: Option<Style>) -> Self {
        Self { text: Raw::from(text).terminal_text(), style, is_link: false }
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::new(text, None)
    }

    /// A marker that says how the text around it is meant.
    pub(super) fn dim(text: &str) -> Self {
        Self::new(text, Some(DIM))
    }

    /// What a list, a quotation or a heading begins with.
    pub(super) fn marker(text: &str) -> Self {
        Self::new(text, Some(MARKER))
    }

    pub(super) fn link(url: &str) -> Self {
        Self { is_link: true, ..Self::new(url, Some(LINK)) }
    }
}
