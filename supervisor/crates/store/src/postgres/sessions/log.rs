//! The messages of a session.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::super::for_each_row::for_each_row;
use super::super::integers::signed;
use super::rows::{message, message_columns};
use super::session_row::{find, lock_session, save};
use crate::error::Error;
use crate::id::SessionId;
use crate::page::{Page, PageBuilder, PageRequest};
use crate::session::{Compaction, Expected, Message, NewMessage, Session, SessionState, View, message_token};
use crate::time::Timestamp;

pub(super) async fn append(
    db: &impl GenericClient,
    id: SessionId,
    expected: Expected,
    messages: Vec<NewMessage>,
    words: &[String],
) -> Result<Vec<Message>, Error> {
    let mut session = lock_session(db, id).await?;
    expected.check(id, session.next_sequence)?;
    let now = Timestamp::now();
    let appended = insert_all(db, &session, messages, words, now).await?;
    record_append(db, &mut session, appended.len() as u64, now).await?;
    Ok(appended)
}

/// Appends messages that leave state and time of the session as they are.
pub(super) async fn note(
    db: &impl GenericClient,
    id: SessionId,
    messages: Vec<NewMessage>,
    words: &[String],
) -> Result<Vec<Message>, Error> {
    let mut session = lock_session(db, id).await?;
    let appended = insert_all(db, &session, messages, words, Timestamp::now()).await?;
    session.next_sequence += appended.len() as u64;
    save(db, &session).await?;
    Ok(appended)
}

async fn insert_all(
    db: &impl GenericClient,
    session: &Session,
    messages: Vec<NewMessage>,
    words: &[String],
    now: Timestamp,
) -> Result<Vec<Message>, Error> {
    let numbered = messages.into_iter().zip(session.next_sequence..);
    let all: Vec<Message> = numbered.map(|(message, sequence)| message.at(sequence, now)).collect();
    for (message, words) in all.iter().zip(words) {
        // The session's row is locked, so that nobody writes the same key meanwhile.
        if let Some(key) = &message.key
            && find_keyed(db, session.id, key).await?.is_some()
        {
            return Err(Error::KeyExists { session: session.id, key: key.clone() });
        }
        insert(db, session.id, message, words).await?;
    }
    Ok(all)
}

pub(super) async fn keyed(
    db: &impl GenericClient,
    id: SessionId,
    key: &str,
) -> Result<Option<Message>, Error> {
    find(db, id).await?.ok_or(Error::NoSession(id))?;
    find_keyed(db, id, key).await
}

async fn find_keyed(db: &impl GenericClient, id: SessionId, key: &str) -> Result<Option<Message>, Error> {
    let sql =
        concat!("SELECT ", message_columns!(), " FROM talon.messages m WHERE session = $1 AND key = $2");
    let sql = db.prepare_cached(sql).await?;
    db.query_opt(&sql, &[&id.to_string(), &key]).await?.map(|row| message(&row)).transpose()
}

pub(super) async fn compact(
    db: &impl GenericClient,
    id: SessionId,
    expected: Expected,
    with: Compaction,
    words: &str,
) -> Result<Message, Error> {
    let mut session = lock_session(db, id).await?;
    let sequence = session.next_sequence;
    expected.check(id, sequence)?;
    with.check(sequence)?;
    let sql = "UPDATE talon.messages SET replaced_by = $3
        WHERE session = $1 AND replaced_by IS NULL AND position <= $2";
    let replaced = db.execute(sql, &[&id.to_string(), &signed(with.through), &signed(sequence)]).await?;
    if replaced == 0 {
        return Err(Compaction::nothing());
    }
    let now = Timestamp::now();
    let mut summary = with.summary.at(sequence, now);
    summary.summarizes = Some(with.through);
    insert(db, id, &summary, words).await?;
    record_append(db, &mut session, 1, now).await?;
    Ok(summary)
}

/// Inserts a message; existing ones are never changed.
pub(super) async fn insert(
    db: &impl GenericClient,
    id: SessionId,
    message: &Message,
    words: &str,
) -> Result<(), Error> {
    let sql = "INSERT INTO talon.messages
        (session, sequence, position, role, content, tool_calls, tool_results, at, replaced_by, words, key)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::tsvector, $11)";
    let sql = db.prepare_cached(sql).await?;
    db.execute(
        &sql,
        &[
            &id.to_string(),
            &signed(message.sequence),
            &signed(message.position()),
            &message.role.word(),
            &message.content.as_bytes(),
            &message.tool_calls.as_ref().map(ToString::to_string),
            &message.tool_results.as_ref().map(ToString::to_string),
            &message.at.as_millis(),
            &message.replaced_by.map(signed),
            &words,
            &message.key,
        ],
    )
    .await?;
    Ok(())
}

async fn record_append(
    db: &impl GenericClient,
    session: &mut Session,
    messages: u64,
    now: Timestamp,
) -> Result<(), Error> {
    session.next_sequence += messages;
    session.updated_at = now;
    session.state = SessionState::Active;
    save(db, session).await
}

pub(super) async fn read(
    db: &impl GenericClient,
    id: SessionId,
    view: View,
    page: &PageRequest,
) -> Result<Page<Message>, Error> {
    let [position, sequence] = page.last_numbers::<2>()?.unwrap_or_default();
    find(db, id).await?.ok_or(Error::NoSession(id))?;
    let mut messages = PageBuilder::new(page);
    let fill = |row: &Row| {
        let message = message(row)?;
        let weight = message.weight();
        Ok(messages.push(message, weight))
    };
    let (id, probe) = (id.to_string(), page.fetch_limit());
    if view == View::Live {
        let sql = concat!(
            "SELECT ",
            message_columns!(),
            " FROM talon.messages m WHERE session = $1 AND replaced_by IS NULL AND (position, sequence) > ($2, $3)
            ORDER BY position, sequence LIMIT $4"
        );
        for_each_row(db, &db.prepare_cached(sql).await?, &[&id, &position, &sequence, &probe], fill).await?;
    } else {
        // By sequence number, the only order that includes every message.
        let sql = concat!(
            "SELECT ",
            message_columns!(),
            " FROM talon.messages m WHERE session = $1 AND sequence > $2
                AND ($3::bigint IS NULL OR replaced_by = $3) ORDER BY sequence LIMIT $4"
        );
        let summary = if let View::ReplacedBy(summary) = view { Some(signed(summary)) } else { None };
        for_each_row(db, &db.prepare_cached(sql).await?, &[&id, &sequence, &summary, &probe], fill).await?;
    }
    Ok(messages.finish(message_token))
}

pub(super) async fn all(db: &impl GenericClient, id: SessionId) -> Result<Vec<Message>, Error> {
    let sql =
        concat!("SELECT ", message_columns!(), " FROM talon.messages m WHERE session = $1 ORDER BY sequence");
    let rows = db.query(&db.prepare_cached(sql).await?, &[&id.to_string()]).await?;
    rows.iter().map(message).collect()
}
