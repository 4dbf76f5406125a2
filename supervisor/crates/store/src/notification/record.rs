//! What is stored of a notification.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::limits::{MAX_NOTE_BYTES, name, size};
use crate::notification::GroupKey;
use crate::notification::batch::check_payload;
use crate::page::PageRequest;
use crate::time::Timestamp;

/// What a notification is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationState {
    /// It waits until it is due, or for its next attempt.
    Waiting,
    /// Somebody has claimed it.
    Sending,
    /// Its sink has it.
    Delivered,
    /// Its sink does not want it.
    Refused,
    /// It was tried for as long as its entry says.
    GivenUp,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// Its id, a ULID.
    pub id: String,
    /// The id of the event that made it.
    pub event: String,
    /// The entry that it is for.
    pub entry: String,
    /// The group of events that it may tell of.
    pub group: String,
    /// How much it matters.
    pub severity: String,
    /// What is told, as JSON.
    pub payload: String,
    /// How many events it stands for.
    pub count: u64,
    /// The number of its changes.
    pub revision: u64,
    /// What it is at.
    pub state: NotificationState,
    /// The number of its attempts.
    pub attempt: u32,
    /// When it was due first.
    pub due_at: Timestamp,
    /// When it is attempted, at the earliest.
    pub next_at: Timestamp,
    /// Until when it takes in more events.
    pub closes_at: Timestamp,
    /// Who claimed it last.
    pub holder: Option<String>,
    /// The number of claims.
    pub epoch: u64,
    /// Until when the claim holds.
    pub lease_until: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why its last attempt failed.
    pub note: String,
}

/// A claim of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationClaim {
    /// Its id.
    pub id: String,
    /// Who claims it.
    pub holder: String,
    /// How long the claim holds.
    pub lease: Duration,
    /// The present time.
    pub now: Timestamp,
}

/// An attempt, by its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationHandle {
    /// The notification's id.
    pub id: String,
    /// The claim's epoch.
    pub epoch: u64,
}

/// How an attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationEnd {
    /// The sink has it.
    Delivered,
    /// The sink does not want it, with the reason.
    Refused(String),
    /// It failed, with the reason, and is not tried again.
    GivenUp(String),
    /// It failed, and is tried again at a time.
    Retry {
        /// Why it failed.
        note: String,
        /// When the next attempt begins, at the earliest.
        at: Timestamp,
    },
    /// It was broken off as its process ends: another may claim it at once.
    Released,
}

/// Which notifications are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Only those of this state.
    pub state: Option<NotificationState>,
    /// Only those of this entry.
    pub entry: Option<String>,
}

/// How many notifications there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotificationCounts {
    /// They wait.
    pub waiting: u64,
    /// They are being delivered.
    pub sending: u64,
    /// They were delivered.
    pub delivered: u64,
    /// They were refused.
    pub refused: u64,
    /// They were given up.
    pub given_up: u64,
}

/// What was deleted since too many waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoldedNotifications {
    /// Notifications that are gone.
    pub notifications: u64,
    /// Events that they stood for.
    pub events: u64,
}

impl NotificationState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Sending, Self::Delivered, Self::Refused, Self::GivenUp];

    /// The state as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::GivenUp => "given_up",
        }
    }

    /// The state of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether it changes no more by itself.
    #[must_use]
    pub fn is_finished(self) -> bool {
        !matches!(self, Self::Waiting | Self::Sending)
    }

    fn parse(word: &str) -> Result<Self, Error> {
        Self::of(word).ok_or_else(|| Error::unreadable("notification's state", format!("{word:?} is none")))
    }
}

impl NotificationCounts {
    pub(crate) fn set(&mut self, state: &str, count: i64) -> Result<(), Error> {
        let count = count.unsigned_abs();
        match NotificationState::parse(state)? {
            NotificationState::Waiting => self.waiting = count,
            NotificationState::Sending => self.sending = count,
            NotificationState::Delivered => self.delivered = count,
            NotificationState::Refused => self.refused = count,
            NotificationState::GivenUp => self.given_up = count,
        }
        Ok(())
    }
}

impl Notification {
    /// Its latest claim.
    #[must_use]
    pub fn handle(&self) -> NotificationHandle {
        NotificationHandle { id: self.id.clone(), epoch: self.epoch }
    }

    /// Its entry and group.
    #[must_use]
    pub fn key(&self) -> GroupKey {
        GroupKey { entry: self.entry.clone(), group: self.group.clone() }
    }

    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.payload.len() + self.note.len() + self.event.len() + self.group.len()
    }
}

/// The columns of a notification, as both engines read them.
pub(crate) struct NotificationColumns {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) entry: String,
    pub(crate) group: String,
    pub(crate) severity: String,
    pub(crate) payload: String,
    pub(crate) count: i64,
    pub(crate) revision: i64,
    pub(crate) state: String,
    pub(crate) attempt: i64,
    pub(crate) due_at: i64,
    pub(crate) next_at: i64,
    pub(crate) closes_at: i64,
    pub(crate) holder: Option<String>,
    pub(crate) epoch: i64,
    pub(crate) lease_until: i64,
    pub(crate) created_at: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) note: String,
}

impl TryFrom<NotificationColumns> for Notification {
    type Error = Error;

    fn try_from(columns: NotificationColumns) -> Result<Self, Error> {
        let at = Timestamp::from_millis;
        Ok(Self {
            id: columns.id,
            event: columns.event,
            entry: columns.entry,
            group: columns.group,
            severity: columns.severity,
            payload: columns.payload,
            count: columns.count.unsigned_abs(),
            revision: columns.revision.unsigned_abs(),
            state: NotificationState::parse(&columns.state)?,
            attempt: u32::try_from(columns.attempt).unwrap_or(u32::MAX),
            due_at: at(columns.due_at),
            next_at: at(columns.next_at),
            closes_at: at(columns.closes_at),
            holder: columns.holder,
            epoch: columns.epoch.unsigned_abs(),
            lease_until: at(columns.lease_until),
            created_at: at(columns.created_at),
            ended_at: columns.ended_at.map(at),
            note: columns.note,
        })
    }
}

pub(crate) fn check_reason(note: &str) -> Result<(), Error> {
    size("a notification's reason", note.len(), MAX_NOTE_BYTES)?;
    if note.contains('\0') {
        return Err(Error::invalid("a notification's reason", "must not hold a NUL"));
    }
    Ok(())
}

pub(crate) fn check_import(new: &Notification) -> Result<(), Error> {
    for (what, text) in [
        ("a notification's id", &new.id),
        ("an event's id", &new.event),
        ("an entry's name", &new.entry),
        ("a group of events", &new.group),
        ("a severity", &new.severity),
    ] {
        name(what, text)?;
    }
    check_payload(&new.payload)?;
    check_reason(&new.note)
}

/// Where a page of a list ends.
pub(crate) fn page_end(last: &Notification) -> Vec<u8> {
    last.id.clone().into_bytes()
}

/// Before which id a page of a list begins.
pub(crate) fn page_start(page: &PageRequest) -> Result<Option<String>, Error> {
    Ok(page.last_text()?.map(str::to_owned))
}
