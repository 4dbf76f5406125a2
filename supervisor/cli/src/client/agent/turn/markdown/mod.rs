//! Markdown of a model with styles, as it streams.
//!
//! Every character is shown in its place, markers too: what is copied from the terminal is what the model wrote, and
//! without colours the text is unchanged. Text is held back only while its style is open: for some characters at the
//! beginning of a line, for a marker, for a URL, and in a code block for a line.
//!
//! Ours, because parsers of Markdown read whole documents, and highlighters of code bring more than a megabyte of
//! syntax definitions.
//!
//! | module | contents |
//! |---|---|
//! | `span` | a piece of text with its style |
//! | `block` | what a line begins with |
//! | `inline` | emphasis, code and links in a line |
//! | `code` | one line of code |
//! | `language` | what is known of a programming language |

mod block;
mod code;
mod inline;
mod language;
mod span;

use block::{LineStart, line_start};
use code::CodeHighlighter;
use inline::InlineStyles;
pub(super) use span::Span;

/// A longer line of code is shown without highlighting, so that little is held back.
const MAX_CODE_LINE_BYTES: usize = 4 << 10;

/// Takes pieces of text and returns what is shown of them.
#[derive(Debug, Default)]
pub(super) struct MarkdownStream {
    /// Text whose style is not known yet; it never holds more than a line.
    held: String,
    state: LineState,
}

/// Where the next character stands.
#[derive(Debug, Default)]
enum LineState {
    #[default]
    LineStart,
    Line(InlineStyles),
    /// In a code block; the fence that closes it.
    Code {
        fence: String,
        code: CodeHighlighter,
    },
    /// In a line of a code block that is too long to be highlighted.
    LongCode {
        fence: String,
        code: CodeHighlighter,
    },
}

impl MarkdownStream {
    /// Adds a piece of sanitized text; returns what can be shown now.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Span> {
        self.held.push_str(piece);
        self.take(false)
    }

    /// The end of the text: returns the rest, and begins anew.
    pub(super) fn finish(&mut self) -> Vec<Span> {
        let spans = self.take(true);
        *self = Self::default();
        spans
    }

    fn take(&mut self, is_end: bool) -> Vec<Span> {
        let mut spans = Vec::new();
        while !self.held.is_empty() {
            let taken = match &mut self.state {
                LineState::LineStart => match line_start(&self.held, is_end) {
                    LineStart::Undecided => break,
                    LineStart::Fence { line, fence, language } => {
                        spans.push(Span::dim(&self.held[..line]));
                        self.state = LineState::Code { fence, code: CodeHighlighter::new(&language) };
                        line
                    }
                    LineStart::Text { marker, styles } => {
                        spans.extend((marker > 0).then(|| Span::marker(&self.held[..marker])));
                        self.state = LineState::Line(styles);
                        marker
                    }
                },
                LineState::Line(styles) => {
                    let (taken, is_line_over) = styles.take(&self.held, is_end, &mut spans);
                    if is_line_over {
                        self.state = LineState::LineStart;
                    } else if taken == 0 {
                        break;
                    }
                    taken
                }
                LineState::Code { fence, code } => match self.held.find('\n') {
                    None if !is_end && self.held.len() <= MAX_CODE_LINE_BYTES => break,
                    None if !is_end => {
                        let (fence, code) = (std::mem::take(fence), std::mem::take(code));
                        self.state = LineState::LongCode { fence, code };
                        0
                    }
                    at => {
                        let line = at.map_or(self.held.len(), |at| at + 1);
                        let text = &self.held[..line];
                        if block::closes(text, fence) {
                            spans.push(Span::dim(text));
                            self.state = LineState::LineStart;
                        } else {
                            code.line(text, &mut spans);
                        }
                        line
                    }
                },
                LineState::LongCode { fence, code } => {
                    let line = self.held.find('\n').map(|at| at + 1);
                    let taken = line.unwrap_or(self.held.len());
                    spans.push(Span::plain(&self.held[..taken]));
                    if line.is_some() {
                        let (fence, code) = (std::mem::take(fence), std::mem::take(code));
                        self.state = LineState::Code { fence, code };
                    }
                    taken
                }
            };
            self.held.drain(..taken);
        }
        spans
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
