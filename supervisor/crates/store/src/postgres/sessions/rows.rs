//! Converts rows to sessions and messages.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use super::super::integers::unsigned;
use crate::error::Error;
use crate::id::SessionId;
use crate::session::{Message, Role, Session, SessionState};
use crate::time::Timestamp;

/// The columns that [`session`] reads.
macro_rules! sessions {
    () => {
        "SELECT id, sender, channel, state, active_model, overrides, metadata, created_at, updated_at, next_sequence
        FROM talon.sessions"
    };
}
/// The columns that [`message`] reads, of a table called `m`.
macro_rules! message_columns {
    () => {
        "m.sequence, m.position, m.role, m.content, m.tool_calls, m.tool_results, m.at, m.replaced_by, m.key"
    };
}
pub(super) use {message_columns, sessions};

pub(super) fn session(row: &Row) -> Result<Session, Error> {
    Ok(Session {
        id: session_id(row, 0)?,
        sender: row.try_get(1)?,
        channel: row.try_get(2)?,
        state: SessionState::parse(row.try_get(3)?)?,
        active_model: row.try_get(4)?,
        overrides: parsed("session's overrides", row.try_get(5)?)?,
        metadata: parsed("session's metadata", row.try_get(6)?)?,
        created_at: Timestamp::from_millis(row.try_get(7)?),
        updated_at: Timestamp::from_millis(row.try_get(8)?),
        next_sequence: unsigned(row.try_get(9)?),
    })
}

pub(super) fn session_id(row: &Row, column: usize) -> Result<SessionId, Error> {
    let text: String = row.try_get(column)?;
    SessionId::new(&text).map_err(|error| Error::unreadable("session's id", error))
}

pub(super) fn message(row: &Row) -> Result<Message, Error> {
    let (sequence, position) = (unsigned(row.try_get(0)?), unsigned(row.try_get(1)?));
    let content = String::from_utf8(row.try_get(3)?);
    let role: String = row.try_get(2)?;
    let json = |what, column| {
        let text: Option<String> = row.try_get(column)?;
        text.map(|text| parsed(what, &text)).transpose()
    };
    Ok(Message {
        sequence,
        role: Role::parse(&role)?,
        content: content.map_err(|error| Error::unreadable("message's content", error))?,
        tool_calls: json("message's tool calls", 4)?,
        tool_results: json("message's tool results", 5)?,
        at: Timestamp::from_millis(row.try_get(6)?),
        summarizes: (position != sequence).then_some(position),
        replaced_by: row.try_get::<_, Option<i64>>(7)?.map(unsigned),
        key: row.try_get(8)?,
    })
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("maps with text keys are always JSON")
}

fn parsed<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::unreadable(what, error))
}
