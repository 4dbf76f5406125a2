//! The journal of a session, in the store.
//!
//! Each [`Entry`] of a turn is written before it takes effect, so that after a crash at any moment the journal says how
//! far the turn was. `record` encodes entries as messages of the store, [`Transcript`] is what a model sees of them,
//! and [`Unfinished`] is a turn without an end, which a driver can resume ([`crate::driver::TurnSpec::resumes`]).
//!
//! One turn writes to a session at a time; the caller that runs turns ensures that.

mod client_view;
mod log;
mod record;
mod transcript;
mod unfinished;

use std::sync::Arc;

use async_trait::async_trait;
use talon_store::{Compaction, Expected, SessionId, Sessions};

use crate::context::{HistoryMessage, Summary};
use crate::driver::{Journal, JournalEntry, JournalError};

pub use client_view::client_messages;
pub use transcript::{Transcript, UNKNOWN};
pub use unfinished::{SessionPosition, UnfinishedTurn, close, session_position, unfinished};

/// The journal of a session in the store.
pub struct StoreJournal {
    sessions: Arc<dyn Sessions>,
    id: SessionId,
}

impl StoreJournal {
    /// Opens the journal of an existing session.
    #[must_use]
    pub fn new(sessions: Arc<dyn Sessions>, id: SessionId) -> Self {
        Self { sessions, id }
    }
}

#[async_trait]
impl Journal for StoreJournal {
    async fn add(&self, turn: u64, entry: JournalEntry) -> Result<(), JournalError> {
        let messages = record::encode(turn, entry);
        self.sessions.append(self.id, Expected::Any, messages).await.map_err(failed)?;
        Ok(())
    }

    async fn past(&self) -> Result<(Vec<HistoryMessage>, Summary), JournalError> {
        let log = log::read(&*self.sessions, self.id).await?;
        let mut transcript = Transcript::default();
        for record in &log.records {
            transcript.apply(record.turn, &record.entry);
        }
        Ok((transcript.finish(), log.summary))
    }

    async fn summarized(&self, messages: usize, summary: Summary) -> Result<(), JournalError> {
        let log = log::read(&*self.sessions, self.id).await?;
        let mut transcript = Transcript::default();
        for record in &log.records {
            transcript.apply(record.turn, &record.entry);
        }
        let past = transcript.finish();
        let refused = |why: &str| JournalError { why: why.to_owned() };
        let last = messages.checked_sub(1).and_then(|last| past.get(last));
        let last = last.ok_or_else(|| refused("there are not so many messages to summarize"))?.turn;
        if past.get(messages).is_some_and(|next| next.turn == last) {
            return Err(refused(
                "a summary stands for whole turns, and this one would end in the middle of one",
            ));
        }
        let through = log.records.iter().rfind(|record| record.turn <= last).map(|record| record.sequence);
        let through = through.ok_or_else(|| refused("there is nothing to summarize"))?;
        let with = Compaction { through, summary: record::summary(last, &summary) };
        self.sessions.compact(self.id, Expected::Any, with).await.map_err(failed)?;
        Ok(())
    }
}

fn failed(error: talon_store::Error) -> JournalError {
    JournalError { why: error.to_string() }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
