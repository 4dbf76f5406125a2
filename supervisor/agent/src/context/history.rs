//! Selects the turns that are shown verbatim; older ones go into the summary.
//!
//! Under constant pressure (`frugal`):
//!
//! - The current turn is shown: its request, and the latest exchange with tools, whole but for the results'
//!   budget; then the exchanges before it, newest first, as long as they fit.
//! - Earlier turns are shown up to the most of [`Sections::turns`] in total, as long as they fit. Once one
//!   does not, only as many stay as it says, so that a summary is due every few turns and not with each.
//! - Older tool results are shown with [`Sections::min_result`] tokens each: by then the model has repeated
//!   what matters.
//!
//! Otherwise everything is shown whole while it fits (`fitting.rs`).
//!
//! A call and its results are shown or left out together (`units.rs`).

use std::collections::VecDeque;

use talon_guard::Sanitizer;

use super::message::{HistoryMessage, count_messages};
use super::sections::Pressure;
use super::shorten::Cutter;
use super::units::{Unit, span, turns};
pub use super::view::HistoryView;
use super::{Sections, fitting};
use crate::tokens::TokenCounter;

/// Selects what to show.
#[must_use]
pub fn select(
    history: &[HistoryMessage],
    sections: &Sections,
    counter: &dyn TokenCounter,
    sanitizer: &Sanitizer,
) -> HistoryView {
    let mut earlier = turns(history);
    let Some(current) = earlier.pop() else { return HistoryView::default() };
    let cutter = Cutter::new(counter, sanitizer);
    if let Pressure::WhenFull { target } = sections.pressure {
        return fitting::fit(earlier, current, sections, target, cutter);
    }
    let mut selection = Selection { sections, cutter, used: 0, shown: VecDeque::new() };
    let (result_tokens, dropped) = selection.show_current(&current);
    // Earlier turns only if nothing after them is left out.
    let most = if dropped.is_empty() { sections.turns.0.saturating_sub(1) } else { 0 };
    let gone = earlier.len() - selection.show_earlier(&earlier, most);
    let left_out = [span(earlier[..gone].iter().flatten()), span(dropped.iter())];
    HistoryView {
        messages: selection.shown.into_iter().flat_map(|unit| unit.messages).collect(),
        left_out: left_out.into_iter().flatten().collect(),
        turns: earlier.len() - gone + 1,
        cut: selection.cutter.cut,
        cut_tokens: selection.cutter.left_out,
        result_tokens,
        recent_tokens: selection.used,
    }
}

/// The units selected so far, from the newest back.
struct Selection<'c> {
    sections: &'c Sections,
    cutter: Cutter<'c>,
    /// Tokens of what is shown, without the latest results.
    used: usize,
    shown: VecDeque<Unit>,
}

impl Selection<'_> {
    /// Shows the current turn: its request, and its exchanges as far as they fit, the latest in any case.
    /// Returns the tokens of the latest results, and the exchanges that are left out.
    fn show_current<'u>(&mut self, current: &'u [Unit]) -> (usize, &'u [Unit]) {
        // The latest exchange and everything after it, then the request.
        let latest = current.iter().rposition(|unit| unit.is_exchange).unwrap_or(current.len());
        let first = current.iter().position(|unit| unit.is_exchange).unwrap_or(current.len());
        let mut result_tokens = 0;
        for (i, unit) in current[latest..].iter().enumerate() {
            let mut unit = unit.clone();
            if i == 0 && unit.is_exchange {
                let Sections { tool_results, min_result, .. } = *self.sections;
                result_tokens = self.cutter.share(&mut unit.messages, tool_results, min_result);
            }
            self.shown.push_back(unit);
        }
        let request = &current[..first];
        self.used = self.tokens(&self.shown).saturating_sub(result_tokens) + self.tokens(request);
        // The exchanges between them, newest first.
        let between = &current[first..latest.max(first)];
        let mut first_shown = 0;
        for (i, unit) in between.iter().enumerate().rev() {
            let unit = self.cutter.shorten(unit, self.sections.min_result);
            let size = self.tokens([&unit]);
            if self.used + size > self.sections.recent {
                first_shown = i + 1;
                break;
            }
            self.used += size;
            self.shown.push_front(unit);
        }
        for unit in request.iter().rev() {
            self.shown.push_front(unit.clone());
        }
        (result_tokens, &between[..first_shown])
    }

    /// Shows the latest of the earlier turns, at most so many. Returns how many.
    fn show_earlier(&mut self, earlier: &[Vec<Unit>], most: usize) -> usize {
        let mut fitting = Vec::new();
        for turn in earlier.iter().rev().take(most) {
            let min_result = self.sections.min_result;
            let turn: Vec<Unit> = turn.iter().map(|unit| self.cutter.shorten(unit, min_result)).collect();
            let size = self.tokens(&turn);
            if self.used + size > self.sections.recent {
                break;
            }
            self.used += size;
            fitting.push((turn, size));
        }
        if fitting.len() < earlier.len() {
            for (_, size) in fitting.drain((self.sections.turns.1.max(1) - 1).min(fitting.len())..) {
                self.used -= size;
            }
        }
        let count = fitting.len();
        for (turn, _) in fitting {
            for unit in turn.into_iter().rev() {
                self.shown.push_front(unit);
            }
        }
        count
    }

    fn tokens<'u>(&self, units: impl IntoIterator<Item = &'u Unit>) -> usize {
        units.into_iter().map(|unit| count_messages(&unit.messages, self.cutter.counter)).sum()
    }
}
