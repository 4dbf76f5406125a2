//! Shows everything while it fits, and shortens in this order once it does not:
//!
//! 1. results of earlier turns, then those of the current one, the oldest first, but not the latest
//! 2. earlier turns, the oldest first: they go into the summary, down to the target
//! 3. the latest results, the longest first, down to half of the room
//! 4. older exchanges of the current turn: they go into a summary for this turn
//! 5. the latest results again, as far as necessary
//!
//! What is freed is rounded up to steps of an eighth of the room, so that the same text is shown for several
//! questions in a row: providers charge less for a beginning that they have seen before.

use super::Sections;
use super::message::count_messages;
use super::shorten::Cutter;
use super::units::{Unit, span};
use super::view::HistoryView;

/// The steps in which room is freed.
const STEPS: usize = 8;

/// A unit with its tokens as shown.
struct Sized {
    unit: Unit,
    tokens: usize,
}

/// Fits the turns into [`Sections::recent`].
pub(super) fn fit(
    earlier: Vec<Vec<Unit>>,
    current: Vec<Unit>,
    sections: &Sections,
    target: usize,
    cutter: Cutter<'_>,
) -> HistoryView {
    let sized = |unit: Unit| {
        let tokens = count_messages(&unit.messages, cutter.counter);
        Sized { unit, tokens }
    };
    let earlier: Vec<Vec<Sized>> =
        earlier.into_iter().map(|turn| turn.into_iter().map(sized).collect()).collect();
    let current: Vec<Sized> = current.into_iter().map(sized).collect();
    let latest = current.iter().rposition(|sized| sized.unit.is_exchange);
    Fitting { sections, cutter, earlier, current, latest }.view(target)
}

struct Fitting<'c> {
    sections: &'c Sections,
    cutter: Cutter<'c>,
    earlier: Vec<Vec<Sized>>,
    current: Vec<Sized>,
    /// The latest exchange of the current turn.
    latest: Option<usize>,
}

impl Fitting<'_> {
    fn view(mut self, target: usize) -> HistoryView {
        self.limit_latest(self.sections.tool_results);
        let room = self.sections.recent;
        let step = (room / STEPS).max(1);
        let excess = self.total().saturating_sub(room);
        self.shorten_older(excess.div_ceil(step) * step);
        let gone = self.summarized_turns(room, room / 100 * target);
        let mut left_out: Vec<_> =
            span(self.earlier[..gone].iter().flatten().map(|sized| &sized.unit)).into_iter().collect();
        self.earlier.drain(..gone);
        self.fit_latest(room, room / 2);
        let dropped = self.summarized_exchanges(room, room / 100 * target);
        left_out.extend(span(self.current[dropped.clone()].iter().map(|sized| &sized.unit)));
        self.latest = self.latest.map(|latest| latest - dropped.len());
        self.current.drain(dropped);
        self.fit_latest(room, 0);
        let result_tokens = self.latest_tokens();
        HistoryView {
            left_out,
            turns: self.earlier.len() + 1,
            cut: self.cutter.cut,
            cut_tokens: self.cutter.left_out,
            result_tokens,
            recent_tokens: self.total().saturating_sub(result_tokens),
            messages: self
                .earlier
                .into_iter()
                .flatten()
                .chain(self.current)
                .flat_map(|sized| sized.unit.messages)
                .collect(),
        }
    }

    fn total(&self) -> usize {
        self.earlier.iter().flatten().chain(&self.current).map(|sized| sized.tokens).sum()
    }

    /// The tokens of the latest results.
    fn latest_tokens(&self) -> usize {
        let Some(latest) = self.latest.and_then(|latest| self.current.get(latest)) else { return 0 };
        self.cutter.sizes(&latest.unit.messages).into_iter().sum()
    }

    /// Shortens the latest results by what is too much, but not below `least`.
    fn fit_latest(&mut self, room: usize, least: usize) {
        let excess = self.total().saturating_sub(room);
        if excess > 0 {
            self.limit_latest(self.latest_tokens().saturating_sub(excess).max(least));
        }
    }

    fn limit_latest(&mut self, budget: usize) {
        if let Some(latest) = self.latest.and_then(|latest| self.current.get_mut(latest)) {
            self.cutter.share(&mut latest.unit.messages, budget, self.sections.min_result);
            latest.tokens = count_messages(&latest.unit.messages, self.cutter.counter);
        }
    }

    /// Shortens results, the oldest first, until so many tokens are free.
    fn shorten_older(&mut self, mut excess: usize) {
        let latest = self.latest.unwrap_or(0);
        let older = self.earlier.iter_mut().flatten().chain(self.current[..latest].iter_mut());
        for sized in older.filter(|sized| sized.unit.is_exchange) {
            if excess == 0 {
                return;
            }
            let results = self.cutter.sizes(&sized.unit.messages);
            let (sum, count) = (results.iter().sum::<usize>(), results.len());
            // The last one keeps what need not be freed.
            let budget = sum.saturating_sub(excess).max(self.sections.min_result * count);
            if budget >= sum {
                continue;
            }
            self.cutter.share(&mut sized.unit.messages, budget, self.sections.min_result);
            let tokens = count_messages(&sized.unit.messages, self.cutter.counter);
            excess = excess.saturating_sub(sized.tokens.saturating_sub(tokens));
            sized.tokens = tokens;
        }
    }

    /// How many of the oldest turns go into the summary: none while all fit.
    fn summarized_turns(&self, room: usize, target: usize) -> usize {
        let (most, kept) = self.sections.turns;
        let mut total = self.total();
        let too_many = self.earlier.len() + 1 > most;
        if total <= room && !too_many {
            return 0;
        }
        let mut gone = 0;
        for turn in &self.earlier {
            // More than the turns that are kept go only if there is no other way.
            let enough = match self.earlier.len() - gone < kept.max(1) {
                true => total <= room,
                false => !too_many && total <= target,
            };
            if enough {
                break;
            }
            total -= turn.iter().map(|sized| sized.tokens).sum::<usize>();
            gone += 1;
        }
        gone
    }

    /// The exchanges of the current turn that are left out: not its request, and not the latest.
    fn summarized_exchanges(&self, room: usize, target: usize) -> std::ops::Range<usize> {
        let first = self.current.iter().position(|sized| sized.unit.is_exchange).unwrap_or(0);
        let latest = self.latest.unwrap_or(first);
        let mut total = self.total();
        if total <= room {
            return first..first;
        }
        let mut end = first;
        while end < latest && total > target {
            total -= self.current[end].tokens;
            end += 1;
        }
        first..end
    }
}

#[cfg(test)]
#[path = "fitting_tests.rs"]
mod tests;
