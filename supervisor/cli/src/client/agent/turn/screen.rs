//! Shows a turn: the answer on stdout, everything else on stderr.

use std::io::IsTerminal as _;

use super::markdown::{MarkdownStream, Span};
use super::render::{DisplayItem, TextStream};
use super::running_calls::RunningCalls;
use super::styles::DIM;
use crate::output::Output;
use crate::terminal_style;
use crate::transient_bar::{SpinnerGroup, TransientBar};

/// The terminal, or the redirected output.
pub(super) struct Screen<'o> {
    pub(super) out: &'o mut Output,
    spinner: Option<TransientBar>,
    /// The calls that run, by their ids.
    calls: Option<(Vec<String>, SpinnerGroup)>,
    /// Whether to show spinners: only for a person who watches.
    is_animated: bool,
    /// A line is incomplete. A spinner would draw over it; streamed text shows activity anyway.
    open: bool,
    /// The answer's styles, if it has any.
    markdown: Option<MarkdownStream>,
}

impl<'o> Screen<'o> {
    pub(super) fn new(out: &'o mut Output) -> Self {
        let is_animated =
            !out.is_json() && std::io::stderr().is_terminal() && !terminal_style::has_screen_reader();
        let markdown = out.has_styles().then(MarkdownStream::default);
        Self { out, spinner: None, calls: None, is_animated, open: false, markdown }
    }

    pub(super) fn show(&mut self, all: Vec<DisplayItem>) {
        for shown in all {
            if let DisplayItem::Phase(text) = shown {
                if self.is_animated && !self.open && self.calls.is_none() {
                    self.show_status(text.into_string());
                }
                continue;
            }
            self.stop_spinner();
            self.open = match &shown {
                DisplayItem::Answer(text) | DisplayItem::Thought(text) if text.is_empty() => self.open,
                DisplayItem::Answer(text) | DisplayItem::Thought(text) => !text.ends_with('\n'),
                _ => false,
            };
            if !matches!(shown, DisplayItem::Answer(_)) {
                let rest = self.markdown.as_mut().map(MarkdownStream::finish).unwrap_or_default();
                self.spans(&rest);
            }
            match shown {
                DisplayItem::Answer(text) => match &mut self.markdown {
                    Some(markdown) => {
                        let spans = markdown.push(&text);
                        self.spans(&spans);
                    }
                    None => self.out.piece(&text),
                },
                DisplayItem::Thought(text) => self.out.err_piece(DIM, &text),
                DisplayItem::Break(TextStream::Answer) => self.out.piece(&"\n".into()),
                DisplayItem::Break(TextStream::Thought) => self.out.err_piece(DIM, &"\n".into()),
                DisplayItem::Line(line) => self.out.err_line(line),
                DisplayItem::Phase(_) => {}
            }
        }
    }

    fn spans(&mut self, spans: &[Span]) {
        for span in spans {
            self.out.styled_piece(span.style, &span.text, span.is_link);
        }
        self.out.flush();
    }

    /// Shows the calls that run, each with its elapsed time.
    pub(super) fn show_calls(&mut self, running: &RunningCalls) {
        if !self.is_animated {
            return;
        }
        let ids = running.ids();
        if ids.is_empty() || self.open {
            self.calls = None;
            return;
        }
        self.spinner = None;
        match &self.calls {
            Some((shown, group)) if *shown == ids => {
                running.lines().enumerate().for_each(|(at, (text, _))| group.set_text(at, text));
            }
            _ => {
                self.calls = None;
                let mut group = SpinnerGroup::default();
                running.lines().for_each(|(text, elapsed)| group.add(text, elapsed));
                self.calls = Some((ids, group));
            }
        }
    }

    fn show_status(&mut self, text: String) {
        match &self.spinner {
            Some(waiting) => waiting.set_message(text),
            None => self.spinner = Some(TransientBar::spinner(text)),
        }
    }

    /// Stops the animation, because a person is about to type.
    pub(super) fn stop_spinner(&mut self) {
        self.spinner = None;
        self.calls = None;
    }
}
