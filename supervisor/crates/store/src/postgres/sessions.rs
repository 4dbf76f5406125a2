//! Sessions in PostgreSQL. Writers take turns by locking the session's row.

mod log;
mod rows;
mod session_row;

use async_trait::async_trait;
use deadpool_postgres::GenericClient;

use super::for_each_row::for_each_row;
use super::{PostgresStore, text_search};
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
use session_row::{find, insert, lock_session, save};

/// The rest of the statement that lists sessions, after what it says of the sender.
macro_rules! list_filter {
    () => {
        " AND ($2::text IS NULL OR channel = $2) AND ($3::text IS NULL OR state = $3)
            AND ($4::bigint IS NULL OR updated_at >= $4) AND ($5::text IS NULL OR id < $5)
            AND ($7::bigint IS NULL OR updated_at < $7)
        ORDER BY id DESC LIMIT $6"
    };
}

/// Lists sessions. One sender's have a statement of their own, which uses the index also where its plan is kept.
const fn list_statement(of_one_sender: bool) -> &'static str {
    if of_one_sender {
        concat!(rows::sessions!(), " WHERE sender = $1", list_filter!())
    } else {
        concat!(rows::sessions!(), " WHERE $1::text IS NULL", list_filter!())
    }
}

#[async_trait]
impl Sessions for PostgresStore {
    async fn create(&self, new: NewSession) -> Result<Session, Error> {
        let session = new.checked()?;
        let mut client = self.client().await?;
        let created = async {
            let transaction = client.transaction().await?;
            insert(&transaction, &session).await?;
            self.commit(transaction, 1).await
        };
        self.inspect_result(created.await).map(|()| session)
    }

    async fn get(&self, id: SessionId) -> Result<Option<Session>, Error> {
        let client = self.client().await?;
        self.inspect_result(find(&client, id).await)
    }

    async fn list(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, Error> {
        filter.check()?;
        let last = page.last_text()?;
        let client = self.client().await?;
        let listed = async {
            let sql = client.prepare_cached(list_statement(filter.sender.is_some())).await?;
            let SessionFilter { sender, channel, state, updated_since, updated_before } = filter;
            let state = state.map(SessionState::word);
            let since = updated_since.map(Timestamp::as_millis);
            let before = updated_before.map(Timestamp::as_millis);
            let mut sessions = PageBuilder::new(page);
            for row in client
                .query(&sql, &[sender, channel, &state, &since, &last, &page.fetch_limit(), &before])
                .await?
            {
                let session = session(&row)?;
                let weight = session.weight();
                sessions.push(session, weight);
            }
            Ok(sessions.finish(|session| session.id.to_string().into_bytes()))
        };
        self.inspect_result(listed.await)
    }

    async fn count(&self, sender: &str, most: u32) -> Result<u32, Error> {
        let client = self.client().await?;
        let counted = async {
            let sql =
                "SELECT count(*) FROM (SELECT 1 FROM talon.sessions WHERE sender = $1 LIMIT $2) AS counted";
            let sql = client.prepare_cached(sql).await?;
            let count: i64 = client.query_one(&sql, &[&sender, &i64::from(most)]).await?.try_get(0)?;
            Ok(u32::try_from(count).unwrap_or(most))
        };
        self.inspect_result(counted.await)
    }

    async fn append(
        &self,
        id: SessionId,
        expected: Expected,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Message>, Error> {
        crate::session::check_append(&messages)?;
        let texts = messages.iter().map(|message| message.content.clone()).collect();
        let words = render_all(texts, text_search::to_tsvector).await?;
        let mut client = self.client().await?;
        let appended = async {
            let transaction = client.transaction().await?;
            let appended = log::append(&transaction, id, expected, messages, &words).await?;
            self.commit(transaction, 1).await?;
            Ok(appended)
        };
        self.inspect_result(appended.await)
    }

    async fn note(&self, id: SessionId, messages: Vec<NewMessage>) -> Result<Vec<Message>, Error> {
        crate::session::check_append(&messages)?;
        let texts = messages.iter().map(|message| message.content.clone()).collect();
        let words = render_all(texts, text_search::to_tsvector).await?;
        let mut client = self.client().await?;
        let noted = async {
            let transaction = client.transaction().await?;
            let noted = log::note(&transaction, id, messages, &words).await?;
            self.commit(transaction, 1).await?;
            Ok(noted)
        };
        self.inspect_result(noted.await)
    }

    async fn keyed(&self, id: SessionId, key: &str) -> Result<Option<Message>, Error> {
        let client = self.client().await?;
        self.inspect_result(log::keyed(&client, id, key).await)
    }

    async fn messages(&self, id: SessionId, view: View, page: &PageRequest) -> Result<Page<Message>, Error> {
        let client = self.client().await?;
        self.inspect_result(log::read(&client, id, view, page).await)
    }

    async fn compact(&self, id: SessionId, expected: Expected, with: Compaction) -> Result<Message, Error> {
        with.summary.check()?;
        let words = render_all(vec![with.summary.content.clone()], text_search::to_tsvector).await?.concat();
        let mut client = self.client().await?;
        let compacted = async {
            let transaction = client.transaction().await?;
            let summary = log::compact(&transaction, id, expected, with, &words).await?;
            self.commit(transaction, 1).await?;
            Ok(summary)
        };
        self.inspect_result(compacted.await)
    }

    async fn update(&self, id: SessionId, change: SessionChange) -> Result<Session, Error> {
        self.apply_change(id, |session| change.apply(session)).await
    }

    async fn idle(
        &self,
        since: Timestamp,
        limit: u32,
        note: Option<NewMessage>,
    ) -> Result<Vec<SessionId>, Error> {
        note.as_ref().map_or(Ok(()), NewMessage::check)?;
        let texts = note.iter().map(|note| note.content.clone()).collect();
        let words = render_all(texts, text_search::to_tsvector).await?;
        let mut client = self.client().await?;
        let made = async {
            // A locked session is being written to, so it is not idle.
            let sql = "UPDATE talon.sessions SET state = 'idle' WHERE id IN (
                    SELECT id FROM talon.sessions WHERE state = 'active' AND updated_at < $1
                    ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
                ) RETURNING id";
            let transaction = client.transaction().await?;
            let rows = transaction.query(sql, &[&since.as_millis(), &i64::from(limit)]).await?;
            let mut idle = rows.iter().map(|row| rows::session_id(row, 0)).collect::<Result<Vec<_>, _>>()?;
            idle.sort_unstable();
            for id in &idle {
                if let Some(note) = &note {
                    log::note(&transaction, *id, vec![note.clone()], &words).await?;
                }
            }
            self.commit(transaction, 1).await?;
            Ok(idle)
        };
        self.inspect_result(made.await)
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
        let (text, skipped) = (text_search::match_all(&Query::parse(&query.text)?), page.offset()?);
        let client = self.client().await?;
        let found = async {
            let sql = concat!(
                "SELECT ",
                rows::message_columns!(),
                ", m.session FROM talon.messages m JOIN talon.sessions s ON s.id = m.session
                WHERE m.words @@ $1::text::tsquery AND ($2::text IS NULL OR m.session = $2)
                    AND ($3::text IS NULL OR s.sender = $3) AND ($4::text IS NULL OR s.channel = $4)
                    AND ($5 OR m.replaced_by IS NULL)
                ORDER BY ts_rank(m.words, $1::text::tsquery, 1) DESC, m.id DESC LIMIT $6 OFFSET $7"
            );
            let sql = client.prepare_cached(sql).await?;
            let SessionQuery { session, sender, channel, include_replaced, .. } = query;
            let session = session.map(String::from);
            let mut hits = PageBuilder::new(page);
            for_each_row(
                &client,
                &sql,
                &[&text, &session, sender, channel, include_replaced, &page.fetch_limit(), &skipped],
                |row| {
                    let message = message(row)?;
                    let weight = message.weight();
                    Ok(hits.push(MessageHit { session: rows::session_id(row, 9)?, message }, weight))
                },
            )
            .await?;
            hits.finish_ranked(page)
        };
        self.inspect_result(found.await)
    }

    async fn delete(&self, id: SessionId) -> Result<bool, Error> {
        let mut client = self.client().await?;
        let deleted = async {
            let transaction = client.transaction().await?;
            // Deleting a session deletes its messages.
            let gone =
                transaction.execute("DELETE FROM talon.sessions WHERE id = $1", &[&id.to_string()]).await?;
            self.commit(transaction, 1).await?;
            Ok(gone > 0)
        };
        self.inspect_result(deleted.await)
    }

    async fn export(&self, id: SessionId) -> Result<ExportedSession, Error> {
        let mut client = self.client().await?;
        let exported = async {
            // Locked, so that session and messages are consistent.
            let transaction = client.transaction().await?;
            let session = lock_session(&transaction, id).await?;
            Ok(ExportedSession { session, messages: log::all(&transaction, id).await? })
        };
        self.inspect_result(exported.await)
    }

    async fn import(&self, import: ExportedSession) -> Result<bool, Error> {
        import.check()?;
        let id = import.session.id;
        let texts = import.messages.iter().map(|message| message.content.clone()).collect();
        let words = render_all(texts, text_search::to_tsvector).await?;
        let mut client = self.client().await?;
        let imported = async {
            let transaction = client.transaction().await?;
            if !insert(&transaction, &import.session).await? {
                let session = lock_session(&transaction, id).await?;
                let there = ExportedSession { session, messages: log::all(&transaction, id).await? };
                return if there == import { Ok(false) } else { Err(Error::SessionExists(id)) };
            }
            for (message, words) in import.messages.iter().zip(&words) {
                log::insert(&transaction, id, message, words).await?;
            }
            self.commit(transaction, 1).await?;
            Ok(true)
        };
        self.inspect_result(imported.await)
    }
}

impl PostgresStore {
    /// Changes a session's attributes, if there is a difference.
    async fn apply_change(
        &self,
        id: SessionId,
        change: impl FnOnce(Session) -> Result<Session, Error> + Send,
    ) -> Result<Session, Error> {
        let mut client = self.client().await?;
        let changed = async {
            let transaction = client.transaction().await?;
            let before = lock_session(&transaction, id).await?;
            let mut session = change(before.clone())?;
            if session != before {
                session.updated_at = Timestamp::now();
                save(&transaction, &session).await?;
                self.commit(transaction, 1).await?;
            }
            Ok(session)
        };
        self.inspect_result(changed.await)
    }
}
