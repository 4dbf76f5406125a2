//! Reads and writes the row of a session.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows::{self, json, session};
use crate::error::Error;
use crate::id::SessionId;
use crate::session::Session;

pub(super) fn find(db: &Connection, id: SessionId) -> Result<Option<Session>, Error> {
    let mut found = db.prepare_cached(concat!(rows::sessions!(), " WHERE id = ?1"))?;
    found.query_row([id.to_string()], |row| Ok(session(row))).optional()?.transpose()
}

pub(super) fn existing(db: &Connection, id: SessionId) -> Result<Session, Error> {
    find(db, id)?.ok_or(Error::NoSession(id))
}

pub(super) fn insert(db: &Connection, session: &Session) -> Result<(), Error> {
    let Session { id, sender, channel, created_at, .. } = session;
    db.prepare_cached(
        "INSERT INTO sessions (id, sender, channel, created_at, state, overrides, metadata, updated_at, next_sequence)
        VALUES (?1, ?2, ?3, ?4, 'active', '', '', 0, 1)",
    )?
    .execute(params![id.to_string(), sender, channel, created_at.as_millis()])?;
    save(db, session)
}

/// Writes the attributes of a session that may change.
pub(super) fn save(db: &Connection, session: &Session) -> Result<(), Error> {
    db.prepare_cached(
        "UPDATE sessions SET state = ?2, active_model = ?3, overrides = ?4, metadata = ?5, updated_at = ?6,
            next_sequence = ?7 WHERE id = ?1",
    )?
    .execute(params![
        session.id.to_string(),
        session.state.word(),
        session.active_model,
        json(&session.overrides),
        json(&session.metadata),
        session.updated_at.as_millis(),
        session.next_sequence,
    ])?;
    Ok(())
}
