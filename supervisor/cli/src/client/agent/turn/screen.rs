//! Shows a turn: the answer on stdout, everything else on stderr.

use std::io::IsTerminal as _;

use super::render::{DIM, DisplayItem, TextStream};
use crate::output::Output;
use crate::transient_bar::TransientBar;

/// The terminal, or the redirected output.
pub(super) struct Screen<'o> {
    pub(super) out: &'o mut Output,
    spinner: Option<TransientBar>,
    /// Whether to show a spinner: only for a person who watches.
    is_animated: bool,
    /// A line is incomplete. The spinner would draw over it; streamed text shows activity anyway.
    open: bool,
}

impl<'o> Screen<'o> {
    pub(super) fn new(out: &'o mut Output) -> Self {
        let is_animated = !out.is_json() && std::io::stderr().is_terminal();
        Self { out, spinner: None, is_animated, open: false }
    }

    pub(super) fn show(&mut self, all: Vec<DisplayItem>) {
        for shown in all {
            if let DisplayItem::Phase(text) = shown {
                if self.is_animated && !self.open {
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
            match shown {
                DisplayItem::Answer(text) => self.out.piece(&text),
                DisplayItem::Thought(text) => self.out.err_piece(DIM, &text),
                DisplayItem::Break(TextStream::Answer) => self.out.piece(&"\n".into()),
                DisplayItem::Break(TextStream::Thought) => self.out.err_piece(DIM, &"\n".into()),
                DisplayItem::Line(line) => self.out.err_line(line),
                DisplayItem::Phase(_) => {}
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
    }
}
