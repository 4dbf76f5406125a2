//! The journal of a session in the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use talon_sanitize::MarkedSpan;
use talon_store::{Compaction, Error, Expected, SessionId, Sessions};

use super::entry::{Journal, JournalEntry, JournalError};
use super::log::{self, store_error};
use super::record;
use super::transcript::Transcript;
use crate::context::{HistoryMessage, Summary};

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
    async fn add_all(&self, turn: u64, entries: Vec<JournalEntry>) -> Result<(), JournalError> {
        let mut messages: Vec<_> =
            entries.into_iter().flat_map(|entry| record::encode(turn, entry)).collect();
        // A message before and after its hooks has one name, which the first of them gets.
        let mut names = BTreeSet::new();
        for message in &mut messages {
            message.key = message.key.take().filter(|key| names.insert(key.clone()));
        }
        let appended = self.sessions.append(self.id, Expected::Any, messages.clone()).await;
        let Err(Error::KeyExists { key, .. }) = &appended else {
            return appended.map(drop).map_err(store_error);
        };
        // The name of a client's message is its turn's: another entry of the same turn has it, such as that of a message
        // before its hooks.
        let known = self.sessions.keyed(self.id, key).await.map_err(store_error)?;
        if known.is_none_or(|known| record::request_turn(&known) != Some(turn)) {
            return appended.map(drop).map_err(store_error);
        }
        messages.iter_mut().for_each(|message| message.key = None);
        self.sessions.append(self.id, Expected::Any, messages).await.map(drop).map_err(store_error)
    }

    async fn past(&self) -> Result<(Vec<HistoryMessage>, Summary), JournalError> {
        let log = log::read(&*self.sessions, self.id).await?;
        let mut transcript = Transcript::default();
        for record in &log.records {
            transcript.apply(record.turn, &record.entry);
        }
        Ok((transcript.finish(), log.summary))
    }

    async fn originals(&self) -> Result<Vec<MarkedSpan>, JournalError> {
        let log = log::read(&*self.sessions, self.id).await?;
        let results = log.records.into_iter().flat_map(|record| match record.entry {
            JournalEntry::CallFinished { result, .. } => vec![result],
            JournalEntry::CallsFinished(results) => results,
            _ => Vec::new(),
        });
        Ok(results.flat_map(|result| result.provenance.originals).collect())
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
        self.sessions.compact(self.id, Expected::Any, with).await.map_err(store_error)?;
        Ok(())
    }
}
