//! Sessions in SQLite. Writers take turns by the write lock of the whole file, which other processes use too.

mod log;
mod rows;
mod session_row;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use super::{SqliteStore, text_search};
use crate::error::Error;
use crate::id::SessionId;
use crate::page::{Page, PageBuilder, PageRequest};
use crate::search::{Query, render_all};
use crate::session::{
    Compaction, Expected, ExportedSession, Message, MessageHit, NewMessage, NewSession, Session,
    SessionChange, SessionFilter, SessionQuery, SessionState, Sessions, View,
};
use crate::time::Timestamp;
use rows::{message, session};
use session_row::{existing, find, insert, save};

/// The rest of the statement that lists sessions, after what it says of the sender.
macro_rules! list_filter {
    () => {
        " AND (?2 IS NULL OR channel = ?2) AND (?3 IS NULL OR state = ?3)
            AND (?4 IS NULL OR updated_at >= ?4) AND (?5 IS NULL OR id < ?5) AND (?7 IS NULL OR updated_at < ?7)
        ORDER BY id DESC LIMIT ?6"
    };
}

/// Lists sessions. One sender's have a statement of their own: an optional condition uses no index, and each turn and each deletion asks
/// for the sub-agents of one session.
const fn list_statement(of_one_sender: bool) -> &'static str {
    if of_one_sender {
        concat!(rows::sessions!(), " WHERE sender = ?1", list_filter!())
    } else {
        concat!(rows::sessions!(), " WHERE ?1 IS NULL", list_filter!())
    }
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn create(&self, new: NewSession) -> Result<Session, Error> {
        let session = new.checked()?;
        self.write(move |db| {
            insert(db, &session)?;
            Ok(session.clone())
        })
        .await
    }

    async fn get(&self, id: SessionId) -> Result<Option<Session>, Error> {
        self.read(move |db| find(db, id)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, Error> {
        filter.check()?;
        let (filter, page) = (filter.clone(), page.clone());
        self.read(move |db| {
            let mut rows = db.prepare_cached(list_statement(filter.sender.is_some()))?;
            let SessionFilter { sender, channel, state, updated_since, updated_before } = filter;
            let state = state.map(SessionState::word);
            let since = updated_since.map(Timestamp::as_millis);
            let before = updated_before.map(Timestamp::as_millis);
            let mut rows = rows.query(params![
                sender,
                channel,
                state,
                since,
                page.last_text()?,
                page.fetch_limit(),
                before
            ])?;
            let mut sessions = PageBuilder::new(&page);
            while let Some(row) = rows.next()? {
                let session = session(row)?;
                let weight = session.weight();
                sessions.push(session, weight);
            }
            Ok(sessions.finish(|session| session.id.to_string().into_bytes()))
        })
        .await
    }

    async fn count(&self, sender: &str, most: u32) -> Result<u32, Error> {
        let sender = sender.to_owned();
        self.read(move |db| {
            let sql = "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE sender = ?1 LIMIT ?2)";
            Ok(db.prepare_cached(sql)?.query_row(params![sender, most], |row| row.get(0))?)
        })
        .await
    }

    async fn append(
        &self,
        id: SessionId,
        expected: Expected,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Message>, Error> {
        crate::session::check_append(&messages)?;
        let texts = messages.iter().map(|message| message.content.clone()).collect();
        let words = render_all(texts, text_search::to_fts5).await?;
        self.write(move |db| log::append(db, id, expected, &messages, &words)).await
    }

    async fn note(&self, id: SessionId, messages: Vec<NewMessage>) -> Result<Vec<Message>, Error> {
        crate::session::check_append(&messages)?;
        let texts = messages.iter().map(|message| message.content.clone()).collect();
        let words = render_all(texts, text_search::to_fts5).await?;
        self.write(move |db| log::note(db, id, &messages, &words)).await
    }

    async fn keyed(&self, id: SessionId, key: &str) -> Result<Option<Message>, Error> {
        let key = key.to_owned();
        self.read(move |db| log::keyed(db, id, &key)).await
    }

    async fn messages(&self, id: SessionId, view: View, page: &PageRequest) -> Result<Page<Message>, Error> {
        let page = page.clone();
        self.read(move |db| log::read(db, id, view, &page)).await
    }

    async fn compact(&self, id: SessionId, expected: Expected, with: Compaction) -> Result<Message, Error> {
        with.summary.check()?;
        let words = render_all(vec![with.summary.content.clone()], text_search::to_fts5).await?.concat();
        self.write(move |db| log::compact(db, id, expected, &with, &words)).await
    }

    async fn update(&self, id: SessionId, change: SessionChange) -> Result<Session, Error> {
        self.apply_change(id, move |session| change.apply(session)).await
    }

    async fn idle(
        &self,
        since: Timestamp,
        limit: u32,
        note: Option<NewMessage>,
    ) -> Result<Vec<SessionId>, Error> {
        note.as_ref().map_or(Ok(()), NewMessage::check)?;
        let texts = note.iter().map(|note| note.content.clone()).collect();
        let words = render_all(texts, text_search::to_fts5).await?;
        self.write(move |db| {
            let mut ids = db.prepare_cached(
                "UPDATE sessions SET state = 'idle' WHERE id IN (
                    SELECT id FROM sessions WHERE state = 'active' AND updated_at < ?1 ORDER BY updated_at LIMIT ?2
                ) RETURNING id",
            )?;
            let mut rows = ids.query((since.as_millis(), limit))?;
            let mut idle = Vec::new();
            while let Some(row) = rows.next()? {
                idle.push(rows::session_id(row, 0)?);
            }
            idle.sort_unstable();
            for id in &idle {
                if let Some(note) = &note {
                    log::note(db, *id, std::slice::from_ref(note), &words)?;
                }
            }
            Ok(idle)
        })
        .await
    }

    async fn resume(&self, id: SessionId) -> Result<Session, Error> {
        self.apply_change(id, |mut session| {
            session.state = SessionState::Active;
            Ok(session)
        })
        .await
    }

    async fn search(&self, query: &SessionQuery, page: &PageRequest) -> Result<Page<MessageHit>, Error> {
        query.check()?;
        let (query, page) = (query.clone(), page.clone());
        let text = text_search::match_all(&Query::parse(&query.text)?);
        self.read(move |db| {
            let mut rows = db.prepare_cached(concat!(
                "SELECT ",
                rows::message_columns!(),
                ", m.session FROM message_words w JOIN messages m ON m.id = w.rowid JOIN sessions s ON s.id = m.session
                WHERE w.words MATCH ?1 AND (?2 IS NULL OR m.session = ?2) AND (?3 IS NULL OR s.sender = ?3)
                    AND (?4 IS NULL OR s.channel = ?4) AND (?5 OR m.replaced_by IS NULL)
                ORDER BY bm25(message_words), m.id DESC LIMIT ?6 OFFSET ?7"
            ))?;
            let SessionQuery { session, sender, channel, include_replaced, .. } = query;
            let session = session.map(String::from);
            let (probe, skipped) = (page.fetch_limit(), page.offset()?);
            let mut rows =
                rows.query(params![text, session, sender, channel, include_replaced, probe, skipped])?;
            let mut hits = PageBuilder::new(&page);
            while let Some(row) = rows.next()? {
                let message = message(row)?;
                let weight = message.weight();
                if !hits.push(MessageHit { session: rows::session_id(row, 10)?, message }, weight) {
                    break;
                }
            }
            hits.finish_ranked(&page)
        })
        .await
    }

    async fn delete(&self, id: SessionId) -> Result<bool, Error> {
        self.write(move |db| {
            let id = id.to_string();
            db.prepare_cached(
                "DELETE FROM message_words WHERE rowid IN (SELECT id FROM messages WHERE session = ?1)",
            )?
            .execute([&id])?;
            db.prepare_cached("DELETE FROM messages WHERE session = ?1")?.execute([&id])?;
            Ok(db.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([&id])? > 0)
        })
        .await
    }

    async fn export(&self, id: SessionId) -> Result<ExportedSession, Error> {
        self.read(move |db| {
            // The transaction ends when it is dropped.
            let moment = db.unchecked_transaction()?;
            exported(&moment, id)
        })
        .await
    }

    async fn import(&self, import: ExportedSession) -> Result<bool, Error> {
        import.check()?;
        let texts = import.messages.iter().map(|message| message.content.clone()).collect();
        let words = render_all(texts, text_search::to_fts5).await?;
        self.write(move |db| {
            let id = import.session.id;
            if find(db, id)?.is_some() {
                return if exported(db, id)? == import { Ok(false) } else { Err(Error::SessionExists(id)) };
            }
            insert(db, &import.session)?;
            let mut messages = import.messages.iter().zip(&words);
            messages.try_for_each(|(message, words)| log::insert(db, id, message, words))?;
            Ok(true)
        })
        .await
    }
}

impl SqliteStore {
    /// Changes a session's attributes, if there is a difference.
    async fn apply_change(
        &self,
        id: SessionId,
        change: impl Fn(Session) -> Result<Session, Error> + Send + 'static,
    ) -> Result<Session, Error> {
        self.write(move |db| {
            let before = existing(db, id)?;
            let mut session = change(before.clone())?;
            if session != before {
                session.updated_at = Timestamp::now();
                save(db, &session)?;
            }
            Ok(session)
        })
        .await
    }
}

fn exported(db: &Connection, id: SessionId) -> Result<ExportedSession, Error> {
    Ok(ExportedSession { session: existing(db, id)?, messages: log::all(db, id)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::new_in_memory;

    #[test]
    fn the_sessions_of_one_sender_are_found_by_an_index() {
        let db = new_in_memory().unwrap();
        let plan = |statement: &str| {
            let mut rows = db.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let nothing = [rusqlite::types::Null; 7];
            let steps = rows.query_map(nothing, |row| row.get::<_, String>("detail")).unwrap();
            steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
        };
        let (one, all) = (plan(list_statement(true)), plan(list_statement(false)));
        assert!(one.contains("USING INDEX sessions_by_sender (sender=?"), "{one}");
        assert!(!one.contains("TEMP B-TREE") && !all.contains("TEMP B-TREE"), "{one} {all}");
    }
}
