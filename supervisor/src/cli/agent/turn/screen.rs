//! Shows a turn: the answer on stdout, everything else on stderr.

use std::io::IsTerminal as _;

use super::super::super::output::Out;
use super::super::super::waiting::Waiting;
use super::render::{DIM, Shown, Voice};

/// The terminal, or the redirected output.
pub(super) struct Screen<'o> {
    pub(super) out: &'o mut Out,
    waiting: Option<Waiting>,
    /// Whether to show a spinner: only for a person who watches.
    lively: bool,
    /// A line is incomplete. The spinner would draw over it; streamed text shows activity anyway.
    open: bool,
}

impl<'o> Screen<'o> {
    pub(super) fn new(out: &'o mut Out) -> Self {
        let lively = !out.is_json() && std::io::stderr().is_terminal();
        Self { out, waiting: None, lively, open: false }
    }

    pub(super) fn show(&mut self, all: Vec<Shown>) {
        for shown in all {
            if let Shown::Phase(text) = shown {
                if self.lively && !self.open {
                    self.says(text.into_string());
                }
                continue;
            }
            self.still();
            self.open = match &shown {
                Shown::Answer(text) | Shown::Thought(text) if text.is_empty() => self.open,
                Shown::Answer(text) | Shown::Thought(text) => !text.ends_with('\n'),
                _ => false,
            };
            match shown {
                Shown::Answer(text) => self.out.piece(&text),
                Shown::Thought(text) => self.out.say_piece(DIM, &text),
                Shown::Break(Voice::Answer) => self.out.piece(&"\n".into()),
                Shown::Break(Voice::Thought) => self.out.say_piece(DIM, &"\n".into()),
                Shown::Line(line) => self.out.say(line),
                Shown::Phase(_) => {}
            }
        }
    }

    fn says(&mut self, text: String) {
        match &self.waiting {
            Some(waiting) => waiting.now(text),
            None => self.waiting = Some(Waiting::for_text(text)),
        }
    }

    /// Stops the animation, because a person is about to type.
    pub(super) fn still(&mut self) {
        self.waiting = None;
    }
}
