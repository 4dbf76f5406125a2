//! A history in units that stay together.
//!
//! A call and its results are one [`Unit`]. A call without a result, as a crash leaves it, gets one that says
//! so; a result without a call is dropped. Providers reject transcripts with either.

use std::ops::Range;

use talon_llm::model::Message;

use super::message::HistoryMessage;

/// The result of a call whose result is missing.
const NO_RESULT: &str = "error: this call was interrupted, and nothing is known of what it did";

/// Messages that are shown or left out as a whole.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// Its range in the history.
    pub(super) range: Range<usize>,
    /// Its messages, valid on their own.
    pub(super) messages: Vec<Message>,
    /// Calls with their results.
    pub(super) is_exchange: bool,
}

/// The history's turns, each split into units.
pub(super) fn turns(history: &[HistoryMessage]) -> Vec<Vec<Unit>> {
    let mut turns = Vec::new();
    let mut start = 0;
    for turn in history.chunk_by(|a, b| a.turn == b.turn) {
        turns.push(units(turn, start));
        start += turn.len();
    }
    turns
}

fn units(turn: &[HistoryMessage], start: usize) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut at = 0;
    while at < turn.len() {
        let message = &turn[at].message;
        let results =
            turn[at + 1..].iter().take_while(|past| matches!(past.message, Message::Tool { .. })).count();
        let range = start + at..start + at + 1 + results;
        at += 1 + results;
        let messages = match message {
            // A result without its call.
            Message::Tool { .. } => Vec::new(),
            Message::Assistant { calls, .. } if !calls.is_empty() => {
                let results: Vec<&Message> =
                    turn[at - results..at].iter().map(|past| &past.message).collect();
                exchange(message, results)
            }
            // Results after it belong to no call.
            _ => vec![message.clone()],
        };
        let is_exchange = messages.len() > 1;
        units.push(Unit { range, messages, is_exchange });
    }
    units
}

/// A message with calls and one result for each, in their order. Ids may occur twice: then each result is
/// used once.
fn exchange(message: &Message, mut results: Vec<&Message>) -> Vec<Message> {
    let Message::Assistant { calls, .. } = message else { return vec![message.clone()] };
    let mut messages = vec![message.clone()];
    for call in calls {
        let found = results
            .iter()
            .position(|result| matches!(result, Message::Tool { call_id, .. } if *call_id == call.id));
        messages.push(match found {
            Some(i) => results.remove(i).clone(),
            None => Message::Tool { call_id: call.id.clone(), content: NO_RESULT.to_owned(), is_error: true },
        });
    }
    messages
}

/// The range from the first to the last of adjacent units.
pub(super) fn span<'u>(mut units: impl Iterator<Item = &'u Unit>) -> Option<Range<usize>> {
    let first = units.next()?;
    Some(first.range.start..units.last().unwrap_or(first).range.end)
}
