//! The messages of a session.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows::{message, message_columns};
use super::session_row::{existing, save};
use crate::error::Error;
use crate::id::SessionId;
use crate::page::{Page, PageBuilder, PageRequest};
use crate::session::{Compaction, Expected, Message, NewMessage, Session, SessionState, View, message_token};
use crate::time::Timestamp;

pub(super) fn append(
    db: &Connection,
    id: SessionId,
    expected: Expected,
    messages: &[NewMessage],
    words: &[String],
) -> Result<Vec<Message>, Error> {
    let mut session = existing(db, id)?;
    expected.check(id, session.next_sequence)?;
    let now = Timestamp::now();
    let appended = insert_all(db, &session, messages, words, now)?;
    record_append(db, &mut session, appended.len() as u64, now)?;
    Ok(appended)
}

/// Appends messages that leave state and time of the session as they are.
pub(super) fn note(
    db: &Connection,
    id: SessionId,
    messages: &[NewMessage],
    words: &[String],
) -> Result<Vec<Message>, Error> {
    let mut session = existing(db, id)?;
    let appended = insert_all(db, &session, messages, words, Timestamp::now())?;
    session.next_sequence += appended.len() as u64;
    save(db, &session)?;
    Ok(appended)
}

fn insert_all(
    db: &Connection,
    session: &Session,
    messages: &[NewMessage],
    words: &[String],
    now: Timestamp,
) -> Result<Vec<Message>, Error> {
    let numbered = messages.iter().zip(session.next_sequence..);
    let all: Vec<Message> = numbered.map(|(message, sequence)| message.clone().at(sequence, now)).collect();
    for (message, words) in all.iter().zip(words) {
        if let Some(key) = &message.key
            && find_keyed(db, session.id, key)?.is_some()
        {
            return Err(Error::KeyExists { session: session.id, key: key.clone() });
        }
        insert(db, session.id, message, words)?;
    }
    Ok(all)
}

pub(super) fn keyed(db: &Connection, id: SessionId, key: &str) -> Result<Option<Message>, Error> {
    existing(db, id)?;
    find_keyed(db, id, key)
}

fn find_keyed(db: &Connection, id: SessionId, key: &str) -> Result<Option<Message>, Error> {
    let mut found = db.prepare_cached(concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages m WHERE session = ?1 AND key = ?2"
    ))?;
    found.query_row(params![id.to_string(), key], |row| Ok(message(row))).optional()?.transpose()
}

pub(super) fn compact(
    db: &Connection,
    id: SessionId,
    expected: Expected,
    with: &Compaction,
    words: &str,
) -> Result<Message, Error> {
    let mut session = existing(db, id)?;
    let sequence = session.next_sequence;
    expected.check(id, sequence)?;
    with.check(sequence)?;
    let replaced = db
        .prepare_cached(
            "UPDATE messages SET replaced_by = ?3 WHERE session = ?1 AND replaced_by IS NULL AND position <= ?2",
        )?
        .execute(params![id.to_string(), with.through, sequence])?;
    if replaced == 0 {
        return Err(Compaction::nothing());
    }
    let now = Timestamp::now();
    let mut summary = with.summary.clone().at(sequence, now);
    summary.summarizes = Some(with.through);
    insert(db, id, &summary, words)?;
    record_append(db, &mut session, 1, now)?;
    Ok(summary)
}

/// Inserts a message; existing ones are never changed.
pub(super) fn insert(db: &Connection, id: SessionId, message: &Message, words: &str) -> Result<(), Error> {
    db.prepare_cached(
        "INSERT INTO messages (session, sequence, position, role, content, tool_calls, tool_results, at, replaced_by, key)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        id.to_string(),
        message.sequence,
        message.position(),
        message.role.word(),
        message.content,
        message.tool_calls.as_ref().map(ToString::to_string),
        message.tool_results.as_ref().map(ToString::to_string),
        message.at.as_millis(),
        message.replaced_by,
        message.key,
    ])?;
    let row = db.last_insert_rowid();
    db.prepare_cached("INSERT INTO message_words (rowid, words) VALUES (?1, ?2)")?
        .execute(params![row, words])?;
    Ok(())
}

fn record_append(db: &Connection, session: &mut Session, messages: u64, now: Timestamp) -> Result<(), Error> {
    session.next_sequence += messages;
    session.updated_at = now;
    session.state = SessionState::Active;
    save(db, session)
}

pub(super) fn read(
    db: &Connection,
    id: SessionId,
    view: View,
    page: &PageRequest,
) -> Result<Page<Message>, Error> {
    existing(db, id)?;
    let [position, sequence] = page.last_numbers::<2>()?.unwrap_or_default();
    let (sql, summary) = match view {
        View::Live => (
            concat!(
                "SELECT ",
                message_columns!(),
                " FROM messages m WHERE session = ?1 AND replaced_by IS NULL AND (position, sequence) > (?2, ?3)
                    AND ?4 IS NULL ORDER BY position, sequence LIMIT ?5"
            ),
            None,
        ),
        // By sequence number, the only order that includes every message.
        View::All | View::ReplacedBy(_) => (
            concat!(
                "SELECT ",
                message_columns!(),
                " FROM messages m WHERE session = ?1 AND ?2 IS NOT NULL AND sequence > ?3
                    AND (?4 IS NULL OR replaced_by = ?4) ORDER BY sequence LIMIT ?5"
            ),
            if let View::ReplacedBy(summary) = view { Some(summary) } else { None },
        ),
    };
    let mut rows = db.prepare_cached(sql)?;
    let mut rows = rows.query(params![id.to_string(), position, sequence, summary, page.fetch_limit()])?;
    let mut messages = PageBuilder::new(page);
    while let Some(row) = rows.next()? {
        let message = message(row)?;
        let weight = message.weight();
        if !messages.push(message, weight) {
            break;
        }
    }
    Ok(messages.finish(message_token))
}

pub(super) fn all(db: &Connection, id: SessionId) -> Result<Vec<Message>, Error> {
    let mut rows = db.prepare_cached(concat!(
        "SELECT ",
        message_columns!(),
        " FROM messages m WHERE session = ?1 ORDER BY sequence"
    ))?;
    let mut rows = rows.query([id.to_string()])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(message(row)?);
    }
    Ok(messages)
}
