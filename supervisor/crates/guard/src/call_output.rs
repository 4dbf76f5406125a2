//! What a call puts out while it runs, for people who watch: never a part of its answer, nor of a prompt.
//!
//! Output passes the sanitize layer as answers do. The caller sets an [`OutputObserver`]; the layer puts a [`RawOutput`]
//! in front of it, the only thing that lines of a plugin can be given to. Each line is sanitized as a whole, and looked at
//! together with the lines above it: one that would complete control syntax with them gets a mark in front.

use std::time::Duration;

use parking_lot::Mutex;
use talon_sanitize::{Raw, Sanitized, Sanitizer, sanitized};
use tokio::time::Instant;

use crate::arc_by_id::ArcById;
use crate::envelope::QUOTE_MARK;
use crate::findings::Findings;

/// How much of a line is kept: fifty lines of a terminal. The rest counts as left out.
pub const MAX_LINE_BYTES: usize = 4096;
/// How many lines of a call are passed on within one [`WINDOW`], far more than people can read; the others are left out.
pub const MAX_LINES_IN_WINDOW: usize = 200;
/// How many bytes of a call are passed on within one [`WINDOW`], which bounds what sanitizing them costs.
pub const MAX_BYTES_IN_WINDOW: usize = 64 << 10;
/// How many bytes of a call are passed on at all, as much as some ten thousand lines.
pub const MAX_BYTES: usize = 4 << 20;
/// How much of the lines above a line is looked at with it: more than any shape of control syntax spans.
const CONTEXT_BYTES: usize = 2048;
/// See [`MAX_LINES_IN_WINDOW`].
pub const WINDOW: Duration = Duration::from_secs(1);

/// What was left out of a call's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Whole lines.
    pub lines: u64,
    /// Bytes of whole lines, as far as they are known, and of lines that were cut.
    pub bytes: u64,
}

impl Omitted {
    /// Adds what else was left out.
    pub fn add(&mut self, more: Self) {
        self.lines = self.lines.saturating_add(more.lines);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    /// One line of this length.
    #[must_use]
    pub fn line(bytes: usize) -> Self {
        Self { lines: 1, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }

    /// Whether nothing was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Receives a call's output.
pub trait OutputObserver: Send + Sync {
    /// Receives lines without their line ends, and what was left out since the last time. Must not block.
    fn output(&self, lines: Vec<Sanitized>, left_out: Omitted);
}

/// Takes what a plugin puts out during a call: limits it, sanitizes it, and passes it on.
pub struct RawOutput {
    sanitizer: Sanitizer,
    observer: ArcById<dyn OutputObserver>,
    state: Mutex<State>,
}

struct State {
    budget: OutputBudget,
    /// The last lines that were passed on.
    above: String,
}

impl RawOutput {
    pub(crate) fn new(sanitizer: Sanitizer, observer: ArcById<dyn OutputObserver>) -> Self {
        let budget = OutputBudget::new(Instant::now());
        Self { sanitizer, observer, state: Mutex::new(State { budget, above: String::new() }) }
    }

    /// Takes lines, and what the plugin and its transport left out. A text with line breaks counts as several lines.
    pub fn push<'t>(&self, lines: impl IntoIterator<Item = Raw<'t>>, mut left_out: Omitted) {
        let mut passed = Vec::new();
        {
            let mut state = self.state.lock();
            state.budget.begin_window(Instant::now());
            for text in lines {
                for line in text.expose().split('\n') {
                    let line = line.strip_suffix('\r').unwrap_or(line);
                    let mut kept = Raw::from(line);
                    let cut = kept.truncate(MAX_LINE_BYTES);
                    if !state.budget.take(kept.len()) {
                        left_out.add(Omitted::line(line.len()));
                        continue;
                    }
                    match self.sanitize_below(&mut state.above, kept) {
                        Some(clean) => passed.push(clean),
                        None => left_out.add(Omitted::line(line.len() - cut)),
                    }
                    left_out.bytes = left_out.bytes.saturating_add(Omitted::line(cut).bytes);
                }
            }
        }
        if !passed.is_empty() || !left_out.is_empty() {
            self.observer.output(passed, left_out);
        }
    }

    /// Sanitizes a line that is shown below others, and adds it to them. `None`: it cannot be shown there.
    fn sanitize_below(&self, above: &mut String, line: Raw<'_>) -> Option<Sanitized> {
        let clean = Findings::default().text(&self.sanitizer, line);
        let marked = sanitized!("{}{}", Sanitized::literal(QUOTE_MARK), clean);
        let fits = |line: &Sanitized| self.sanitizer.is_clean(&[above, "\n", line.as_str()].concat());
        let shown = [clean, marked].into_iter().find(fits)?;
        above.push('\n');
        above.push_str(&shown);
        let start = above.ceil_char_boundary(above.len().saturating_sub(CONTEXT_BYTES));
        above.drain(..start);
        Some(shown)
    }
}

/// What may still be passed on.
struct OutputBudget {
    began: Instant,
    lines: usize,
    bytes: usize,
    total: usize,
}

impl OutputBudget {
    fn new(now: Instant) -> Self {
        Self { began: now, lines: MAX_LINES_IN_WINDOW, bytes: MAX_BYTES_IN_WINDOW, total: MAX_BYTES }
    }

    fn begin_window(&mut self, now: Instant) {
        if now >= self.began + WINDOW {
            *self = Self { total: self.total, ..Self::new(now) };
        }
    }

    /// Takes a line of this length; whether it fits.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.lines > 0 && bytes <= self.bytes.min(self.total);
        if fits {
            self.lines -= 1;
            self.bytes -= bytes;
            self.total -= bytes;
        }
        fits
    }
}

#[cfg(test)]
#[path = "call_output_tests.rs"]
mod tests;
