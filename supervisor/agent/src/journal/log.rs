//! A session's live messages, read back as entries.

use std::collections::VecDeque;

use talon_llm::model::Answer;
use talon_store::{Message, PageRequest, Role, SessionId, Sessions, View};

use super::record::{DecodedMessage, decode};
use super::{JournalEntry, JournalError, TurnOptions, TurnOutcome};
use crate::context::Summary;

/// How many of a session's latest messages are read: 20,000. A session reaches that only if its summaries
/// fail for thousands of turns; then the oldest messages are no longer shown, and stay in the store. Not
/// configurable.
const MAX_MESSAGES: usize = 20_000;
/// The largest total size of these messages, since a message may have a megabyte.
const MAX_BYTES: usize = 64 << 20;
/// Messages per page: the most that the store returns at once.
const PAGE: u32 = 1_000;

/// A stored entry.
#[derive(Debug)]
pub(super) struct LoggedEntry {
    /// The sequence number of its last message.
    pub(super) sequence: u64,
    pub(super) turn: u64,
    pub(super) entry: JournalEntry,
}

/// The entries that are not summarized, and the summary.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) summary: Summary,
    /// In the order of writing, without turns that were undone.
    pub(super) records: Vec<LoggedEntry>,
    /// The number of the last turn; 0 before the first.
    pub(super) last_turn: u64,
}

/// Reads the live view.
pub(super) async fn read(sessions: &dyn Sessions, id: SessionId) -> Result<Log, JournalError> {
    let mut messages: VecDeque<Message> = VecDeque::new();
    let (mut bytes, mut dropped) = (0, 0_usize);
    let mut page = PageRequest::first(PAGE);
    loop {
        let got = sessions.messages(id, View::Live, &page).await.map_err(store_error)?;
        for message in got.items {
            bytes += weight(&message);
            messages.push_back(message);
        }
        while messages.len() > MAX_MESSAGES || bytes > MAX_BYTES {
            let Some(oldest) = messages.pop_front() else { break };
            bytes -= weight(&oldest);
            dropped += 1;
        }
        let Some(next) = got.next else { break };
        page = PageRequest::after(next, PAGE);
    }
    if dropped > 0 {
        tracing::warn!(target: "agent", session = %id, dropped, "a session is too long to be read whole: compact it");
    }
    Ok(Log::of(messages))
}

fn weight(message: &Message) -> usize {
    let json = |json: &Option<serde_json::Value>| json.as_ref().map_or(0, |json| json.to_string().len());
    message.content.len() + json(&message.tool_calls) + json(&message.tool_results)
}

impl Log {
    fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut log = Self::default();
        let mut results = Vec::new();
        for message in messages {
            let sequence = message.sequence;
            match decode(&message) {
                DecodedMessage::Entry(turn, entry) => log.add(sequence, turn, entry),
                DecodedMessage::Result { turn, place, of, result } => {
                    if place == 0 {
                        results.clear();
                    }
                    results.push(result);
                    if results.len() == of {
                        log.add(sequence, turn, JournalEntry::CallsFinished(std::mem::take(&mut results)));
                    }
                }
                DecodedMessage::Summary(turn, summary) => {
                    log.summary = summary;
                    log.last_turn = log.last_turn.max(turn);
                }
                DecodedMessage::Fact => {}
                DecodedMessage::Foreign => log.foreign(message),
            }
        }
        // The rest of a turn whose beginning was not read cannot be assigned.
        let begins = |record: &LoggedEntry| {
            matches!(record.entry, JournalEntry::Received { .. } | JournalEntry::Asked { .. })
        };
        let first = log.records.iter().position(begins);
        log.records.drain(..first.unwrap_or(log.records.len()));
        log
    }

    fn add(&mut self, sequence: u64, turn: u64, entry: JournalEntry) {
        self.last_turn = self.last_turn.max(turn);
        if let JournalEntry::Undone { from } = entry {
            self.records.retain(|record| record.turn < from);
            return;
        }
        self.records.push(LoggedEntry { sequence, turn, entry });
    }

    /// Adds a message that no turn wrote: a question starts a turn, an answer ends it.
    fn foreign(&mut self, message: Message) {
        let Message { sequence, role, content, summarizes, .. } = message;
        let turn = self.last_turn;
        match role {
            Role::User => {
                self.add(
                    sequence,
                    turn + 1,
                    JournalEntry::Asked { text: content, with: Box::new(TurnOptions::default()) },
                );
            }
            Role::Assistant => {
                let answer = Box::new(Answer { text: content, ..Answer::default() });
                self.add(sequence, turn, JournalEntry::Answered { answer, micro_usd: 0, withheld: false });
                let ended = TurnOutcome { reason: "done".to_owned(), ..TurnOutcome::default() };
                self.add(sequence, turn, JournalEntry::Ended(ended));
            }
            Role::System if summarizes.is_some() => {
                self.summary = Summary { text: content, ..Summary::default() };
            }
            Role::System | Role::Tool => {}
        }
    }
}

/// The journal's error for an error of the store.
pub(super) fn store_error(error: talon_store::Error) -> JournalError {
    JournalError { why: error.to_string() }
}
