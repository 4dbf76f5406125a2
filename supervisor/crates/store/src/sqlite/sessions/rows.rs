//! Converts rows to sessions and messages.

use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::id::SessionId;
use crate::session::{Message, Role, Session, SessionState};
use crate::time::Timestamp;

/// The columns that [`session`] reads.
macro_rules! sessions {
    () => {
        "SELECT id, sender, channel, state, active_model, overrides, metadata, created_at, updated_at, next_sequence
        FROM sessions"
    };
}
/// The columns that [`message`] reads, of a table called `m`.
macro_rules! message_columns {
    () => {
        "m.sequence, m.position, m.role, m.content, m.tool_calls, m.tool_results, m.at, m.replaced_by, m.key, m.id"
    };
}
pub(super) use {message_columns, sessions};

pub(super) fn session(row: &Row<'_>) -> Result<Session, Error> {
    Ok(Session {
        id: session_id(row, 0)?,
        sender: row.get(1)?,
        channel: row.get(2)?,
        state: SessionState::parse(&row.get::<_, String>(3)?)?,
        active_model: row.get(4)?,
        overrides: parsed("session's overrides", &row.get::<_, String>(5)?)?,
        metadata: parsed("session's metadata", &row.get::<_, String>(6)?)?,
        created_at: Timestamp::from_millis(row.get(7)?),
        updated_at: Timestamp::from_millis(row.get(8)?),
        next_sequence: row.get(9)?,
    })
}

pub(super) fn session_id(row: &Row<'_>, column: usize) -> Result<SessionId, Error> {
    let text: String = row.get(column)?;
    SessionId::new(&text).map_err(|error| Error::unreadable("session's id", error))
}

pub(super) fn message(row: &Row<'_>) -> Result<Message, Error> {
    let (sequence, position): (u64, u64) = (row.get(0)?, row.get(1)?);
    let role: String = row.get(2)?;
    let json = |what, column| {
        let text: Option<String> = row.get(column)?;
        text.map(|text| parsed(what, &text)).transpose()
    };
    Ok(Message {
        sequence,
        role: Role::parse(&role)?,
        content: row.get(3)?,
        tool_calls: json("message's tool calls", 4)?,
        tool_results: json("message's tool results", 5)?,
        at: Timestamp::from_millis(row.get(6)?),
        summarizes: (position != sequence).then_some(position),
        replaced_by: row.get(7)?,
        key: row.get(8)?,
    })
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("maps with text keys are always JSON")
}

fn parsed<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::unreadable(what, error))
}
