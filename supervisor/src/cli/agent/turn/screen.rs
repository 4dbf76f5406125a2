//! Where a turn is shown: the answer on stdout, everything else on stderr.

use std::io::IsTerminal as _;

use super::super::super::output::Out;
use super::super::super::waiting::Waiting;
use super::render::{DIM, Shown, Voice};

/// The terminal, or what takes its place.
pub(super) struct Screen<'o> {
    pub(super) out: &'o mut Out,
    waiting: Option<Waiting>,
    /// Whether signs of life are wanted: they are for people who look on.
    lively: bool,
    /// The last line was begun and is not ended: a sign of life would be drawn over it. Text that comes is one by itself.
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

    /// Nothing moves any more: somebody types.
    pub(super) fn still(&mut self) {
        self.waiting = None;
    }
}
