//! A decision about events: which notifications are new, and which ones take in more.

use crate::error::Error;
use crate::limits::{MAX_BATCH, MAX_PAYLOAD_BYTES, count, name, size};
use crate::notification::Notification;
use crate::time::Timestamp;

/// Events of one entry that may be told in one notification.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    /// The entry's name.
    pub entry: String,
    /// The group.
    pub group: String,
}

/// A new notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNotification {
    /// Its id, a ULID. The same for every attempt.
    pub id: String,
    /// The id of the event that makes it.
    pub event: String,
    /// The entry and the group.
    pub key: GroupKey,
    /// How much it matters: `info`, `warning` or `critical`.
    pub severity: String,
    /// What is told, as JSON.
    pub payload: String,
    /// How many events it stands for.
    pub count: u64,
    /// When it is delivered, at the earliest.
    pub due_at: Timestamp,
    /// Until when it takes in more events; not after it is due.
    pub closes_at: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What becomes of one notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationChange {
    /// It is new.
    New(NewNotification),
    /// It takes in events.
    Extend {
        /// Its id.
        id: String,
        /// How many more events it stands for.
        more: u64,
        /// What is told now, if that changes.
        payload: Option<String>,
        /// How much it matters now.
        severity: String,
    },
}

/// A decision about events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationBatch {
    /// The groups that were looked at, with id and revision of the latest notification of each.
    pub groups: Vec<(GroupKey, Option<(String, u64)>)>,
    /// The changes.
    pub changes: Vec<NotificationChange>,
    /// The source of the events and its last number, if they have numbers; and the number before it.
    pub cursor: Option<(String, u64, u64)>,
}

impl Notification {
    /// What a batch says of it to have looked at.
    #[must_use]
    pub fn seen(&self) -> (String, u64) {
        (self.id.clone(), self.revision)
    }
}

/// Checks what a batch stores.
pub(crate) fn check_batch(batch: &NotificationBatch) -> Result<(), Error> {
    count("a batch's changes", batch.changes.len(), MAX_BATCH)?;
    count("a batch's groups", batch.groups.len(), MAX_BATCH)?;
    if let Some((source, ..)) = &batch.cursor {
        name("a source of events", source)?;
    }
    for change in &batch.changes {
        match change {
            NotificationChange::New(new) => check_new(new)?,
            NotificationChange::Extend { payload, severity, .. } => {
                name("a severity", severity)?;
                payload.as_deref().map_or(Ok(()), check_payload)?;
            }
        }
    }
    Ok(())
}

pub(crate) fn check_new(new: &NewNotification) -> Result<(), Error> {
    for (what, text) in [
        ("a notification's id", &new.id),
        ("an event's id", &new.event),
        ("an entry's name", &new.key.entry),
        ("a group of events", &new.key.group),
        ("a severity", &new.severity),
    ] {
        name(what, text)?;
    }
    check_payload(&new.payload)
}

pub(crate) fn check_payload(payload: &str) -> Result<(), Error> {
    size("a notification's payload", payload.len(), MAX_PAYLOAD_BYTES)?;
    // PostgreSQL stores no NUL, and JSON has none.
    if payload.contains('\0') {
        return Err(Error::invalid("a notification's payload", "must not hold a NUL"));
    }
    Ok(())
}
