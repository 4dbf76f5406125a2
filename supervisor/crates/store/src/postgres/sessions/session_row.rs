//! Reads and writes the row of a session.

use deadpool_postgres::GenericClient;

use super::super::integers::signed;
use super::rows::{self, json, session};
use crate::error::Error;
use crate::id::SessionId;
use crate::session::Session;

pub(super) async fn find(db: &impl GenericClient, id: SessionId) -> Result<Option<Session>, Error> {
    let sql = db.prepare_cached(concat!(rows::sessions!(), " WHERE id = $1")).await?;
    db.query_opt(&sql, &[&id.to_string()]).await?.map(|row| session(&row)).transpose()
}

/// Reads a session and locks it until the transaction ends.
pub(super) async fn lock_session(db: &impl GenericClient, id: SessionId) -> Result<Session, Error> {
    let sql = db.prepare_cached(concat!(rows::sessions!(), " WHERE id = $1 FOR UPDATE")).await?;
    let row = db.query_opt(&sql, &[&id.to_string()]).await?;
    row.map(|row| session(&row)).transpose()?.ok_or(Error::NoSession(id))
}

/// Returns whether the id was new.
pub(super) async fn insert(db: &impl GenericClient, session: &Session) -> Result<bool, Error> {
    let sql = "INSERT INTO talon.sessions
        (id, sender, channel, created_at, state, overrides, metadata, updated_at, next_sequence)
        VALUES ($1, $2, $3, $4, 'active', '', '', 0, 1) ON CONFLICT (id) DO NOTHING";
    let Session { id, sender, channel, created_at, .. } = session;
    let sql = db.prepare_cached(sql).await?;
    let new = db.execute(&sql, &[&id.to_string(), sender, channel, &created_at.as_millis()]).await? > 0;
    if new {
        save(db, session).await?;
    }
    Ok(new)
}

/// Writes the attributes of a session that may change.
pub(super) async fn save(db: &impl GenericClient, session: &Session) -> Result<(), Error> {
    let sql = "UPDATE talon.sessions SET state = $2, active_model = $3, overrides = $4, metadata = $5,
        updated_at = $6, next_sequence = $7 WHERE id = $1";
    let sql = db.prepare_cached(sql).await?;
    db.execute(
        &sql,
        &[
            &session.id.to_string(),
            &session.state.word(),
            &session.active_model,
            &json(&session.overrides),
            &json(&session.metadata),
            &session.updated_at.as_millis(),
            &signed(session.next_sequence),
        ],
    )
    .await?;
    Ok(())
}
