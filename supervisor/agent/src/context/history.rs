//! Selects the turns that are shown verbatim; older ones go into the summary.
//!
//! - The current turn is shown: its request, and the latest exchange with tools, whole but for the results' budget;
//!   then the exchanges before it, newest first, as long as they fit.
//! - Earlier turns are shown up to [`MAX_TURNS`] in total, as long as they fit. Once one does not, only [`KEPT_TURNS`]
//!   stay, so that a summary is due every few turns and not with each.
//! - Older tool results are shown with [`MIN_RESULT_TOKENS`] each: by then the model has repeated what matters.
//!
//! A call and its results are shown or left out together (`units.rs`).

use std::collections::VecDeque;
use std::ops::Range;

use talon_guard::{Sanitizer, Wrapped};
use talon_llm::model::Message;

use super::units::{Unit, turns};
use super::{MIN_RESULT_TOKENS, Sections, TokenCounter, count_messages, cut, shares};

/// The most turns shown, including the current one: the founding "last 5–10".
pub const MAX_TURNS: usize = 10;
/// The turns that stay when older ones go into the summary, if they fit.
pub const KEPT_TURNS: usize = 5;

/// A message of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryMessage {
    /// The turn's number. Notes of the agent belong to the turn in which they were made.
    pub turn: u64,
    /// The message.
    pub message: Message,
}

/// The part of a session that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryView {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Ranges of the history that are left out and not summarized yet, oldest first.
    pub left_out: Vec<Range<usize>>,
    /// How many turns are shown.
    pub turns: usize,
    /// How many results were cut.
    pub cut: usize,
    /// Tokens of the latest results.
    pub result_tokens: usize,
    /// Tokens of everything else.
    pub recent_tokens: usize,
}

/// Selects what to show.
#[must_use]
pub fn select(
    history: &[HistoryMessage],
    sections: &Sections,
    counter: &dyn TokenCounter,
    sanitizer: &Sanitizer,
) -> HistoryView {
    let mut turns = turns(history);
    let mut cutter = Cutter { counter, sanitizer, cut: 0 };
    let Some(current) = turns.pop() else {
        return HistoryView {
            messages: vec![],
            left_out: vec![],
            turns: 0,
            cut: 0,
            result_tokens: 0,
            recent_tokens: 0,
        };
    };
    let mut shown: VecDeque<Unit> = VecDeque::new();
    let mut left_out = Vec::new();

    // The latest exchange and everything after it, then the request.
    let latest = current.iter().rposition(|unit| unit.is_exchange).unwrap_or(current.len());
    let asked = current.iter().position(|unit| unit.is_exchange).unwrap_or(current.len());
    let mut result_tokens = 0;
    for (i, unit) in current[latest..].iter().enumerate() {
        let mut unit = unit.clone();
        if i == 0 && unit.is_exchange {
            result_tokens = cutter.share(&mut unit.messages, sections.tool_results);
        }
        shown.push_back(unit);
    }
    let tokens = |units: &mut dyn Iterator<Item = &Unit>| -> usize {
        units.map(|unit| count_messages(&unit.messages, counter)).sum()
    };
    let asked_units = &current[..asked];
    let mut used = tokens(&mut shown.iter()).saturating_sub(result_tokens) + tokens(&mut asked_units.iter());
    // The exchanges between them, newest first.
    let between = &current[asked..latest.max(asked)];
    let mut first_shown = 0;
    for (i, unit) in between.iter().enumerate().rev() {
        let unit = cutter.shorten(unit);
        let size = count_messages(&unit.messages, counter);
        if used + size > sections.recent {
            first_shown = i + 1;
            break;
        }
        used += size;
        shown.push_front(unit);
    }
    let dropped = &between[..first_shown];
    for unit in asked_units.iter().rev() {
        shown.push_front(unit.clone());
    }

    // Earlier turns, newest first; none of them if something after them is left out.
    let mut fitting = Vec::new();
    let most = if dropped.is_empty() { MAX_TURNS - 1 } else { 0 };
    for turn in turns.iter().rev().take(most) {
        let turn: Vec<Unit> = turn.iter().map(|unit| cutter.shorten(unit)).collect();
        let size = tokens(&mut turn.iter());
        if used + size > sections.recent {
            break;
        }
        used += size;
        fitting.push((turn, size));
    }
    if fitting.len() < turns.len() {
        for (_, size) in fitting.drain((KEPT_TURNS - 1).min(fitting.len())..) {
            used -= size;
        }
    }
    let gone = turns.len() - fitting.len();
    left_out.extend(span(turns[..gone].iter().flatten()));
    left_out.extend(span(dropped.iter()));
    let turns = fitting.len() + 1;
    for (turn, _) in fitting {
        for unit in turn.into_iter().rev() {
            shown.push_front(unit);
        }
    }
    let messages = shown.into_iter().flat_map(|unit| unit.messages).collect();
    HistoryView { messages, left_out, turns, cut: cutter.cut, result_tokens, recent_tokens: used }
}

/// The range from the first to the last of adjacent units.
fn span<'u>(mut units: impl Iterator<Item = &'u Unit>) -> Option<Range<usize>> {
    let first = units.next()?;
    Some(first.range.start..units.last().unwrap_or(first).range.end)
}

struct Cutter<'c> {
    counter: &'c dyn TokenCounter,
    sanitizer: &'c Sanitizer,
    cut: usize,
}

impl Cutter<'_> {
    /// Shortens the results of an older unit.
    fn shorten(&mut self, unit: &Unit) -> Unit {
        let mut unit = unit.clone();
        for message in &mut unit.messages {
            self.result(message, MIN_RESULT_TOKENS);
        }
        unit
    }

    /// Truncates the latest results to their shares. Returns their tokens.
    fn share(&mut self, messages: &mut [Message], budget: usize) -> usize {
        let mut results: Vec<&mut Message> =
            messages.iter_mut().filter(|message| matches!(message, Message::Tool { .. })).collect();
        let size = |message: &Message| match message {
            Message::Tool { content, .. } => self.counter.count(content),
            _ => 0,
        };
        let sizes: Vec<usize> = results.iter().map(|message| size(message)).collect();
        let shares = shares(&sizes, budget);
        for (message, share) in results.iter_mut().zip(shares) {
            self.result(message, share.max(MIN_RESULT_TOKENS));
        }
        results
            .iter()
            .map(|message| match message {
                Message::Tool { content, .. } => self.counter.count(content),
                _ => 0,
            })
            .sum()
    }

    fn result(&mut self, message: &mut Message, tokens: usize) {
        let Message::Tool { content, .. } = message else { return };
        if self.counter.count(content) <= tokens {
            return;
        }
        *content = match Wrapped::parse(content, self.sanitizer) {
            Some(block) => cut::block(&block, tokens, self.counter, self.sanitizer).into_string(),
            None => cut::plain(content, tokens, self.counter),
        };
        self.cut += 1;
    }
}
