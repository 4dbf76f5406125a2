//! Notifications that are to be delivered: an outbox.
//!
//! A notification is a row that is unique by event and entry of the configuration. It is stored before
//! anybody is told; who delivers it claims it for a while, by a lease, and each claim has a larger epoch. Only
//! the holder of the latest epoch may write, so that of two that deliver it only one ends it. It is told at
//! least once: a process that is killed between the delivery and its note leaves a lease that expires.
//!
//! ```text
//! waiting ──claim──► sending ──► delivered, refused, given up
//!    ▲  ▲                │ │                │
//!    │  └──── retry ─────┘ └── the lease expired: another claims it, with a larger epoch
//!    └──────────────── by a person's wish ──┘
//! ```

mod batch;
mod forget;
mod record;

use async_trait::async_trait;

pub use batch::{GroupKey, NewNotification, NotificationBatch, NotificationChange};
pub(crate) use batch::{check_batch, check_new};
pub(crate) use forget::{Remainder, mark_of, without_sender};
pub use record::{
    FoldedNotifications, Notification, NotificationClaim, NotificationCounts, NotificationEnd,
    NotificationFilter, NotificationHandle, NotificationState,
};
pub(crate) use record::{NotificationColumns, check_import, check_reason, page_end, page_start};

use crate::error::Error;
use crate::page::{Page, PageRequest};
use crate::time::Timestamp;

/// The outbox.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// The latest notification of each of these groups; groups without one are left out.
    async fn latest(&self, groups: &[GroupKey]) -> Result<Vec<Notification>, Error>;

    /// Which of these events, each with the entry that it is for, made a notification of that entry already.
    async fn known_events(&self, events: &[(String, String)]) -> Result<Vec<(String, String)>, Error>;

    /// Stores a decision about events, and how far their source is read, at once. `false` if one of its groups
    /// has changed meanwhile, or the source was read further; nothing is stored then. An event that made a
    /// notification of the entry already makes no other.
    async fn write(&self, batch: NotificationBatch) -> Result<bool, Error>;

    /// Up to which number the events of a source are stored. 0 before the first.
    async fn cursor(&self, source: &str) -> Result<u64, Error>;

    /// If more than `limit` notifications of an entry wait, deletes the oldest of the least severe ones until a
    /// tenth of the limit is free, and counts them in one that stands for them: `stand_in`, or the one of its
    /// group that waits already. Returns what was deleted.
    async fn fold(&self, limit: u32, stand_in: NewNotification) -> Result<FoldedNotifications, Error>;

    /// Notifications of an entry that may be claimed at `now`, in the order in which they are due, at most
    /// `limit`.
    async fn due(&self, entry: &str, now: Timestamp, limit: u32) -> Result<Vec<Notification>, Error>;

    /// When the next notification of an entry may be claimed that may not be claimed now.
    async fn next_due(&self, entry: &str, now: Timestamp) -> Result<Option<Timestamp>, Error>;

    /// Claims a notification that waits and is due, or whose lease expired. `None` if another has it.
    async fn claim(&self, claim: NotificationClaim) -> Result<Option<Notification>, Error>;

    /// Ends an attempt. `false` if another has claimed it, or it was deleted.
    async fn end(
        &self,
        handle: &NotificationHandle,
        end: NotificationEnd,
        now: Timestamp,
    ) -> Result<bool, Error>;

    /// Lets all leases expire, where one process has the store alone: what they were for is over. With
    /// PostgreSQL nothing changes, since another process may hold them.
    async fn expire_leases(&self) -> Result<(), Error>;

    /// Has notifications that were refused or given up wait again, with all their attempts before them: the one
    /// with this id, or all. Returns how many.
    async fn retry(&self, id: Option<&str>, now: Timestamp) -> Result<u64, Error>;

    /// One notification.
    async fn get(&self, id: &str) -> Result<Option<Notification>, Error>;

    /// Notifications, the latest first.
    async fn list(
        &self,
        filter: &NotificationFilter,
        page: &PageRequest,
    ) -> Result<Page<Notification>, Error>;

    /// The entries for which something waits or is being delivered.
    async fn open_entries(&self) -> Result<Vec<String>, Error>;

    /// How many there are of each state.
    async fn counts(&self) -> Result<NotificationCounts, Error>;

    /// Deletes finished notifications that ended before a time, and of the others all but the latest `keep` of
    /// each entry that were delivered or refused; returns how many.
    async fn prune(&self, keep: u32, ended_before: Timestamp) -> Result<u64, Error>;

    /// Deletes the events that name a sender in their field `sender`: out of notifications with several events,
    /// and else with the notification. Returns how many notifications held one.
    async fn forget_sender(&self, sender: &str) -> Result<u64, Error>;

    /// Stores a notification as it was exported, unless there is one of its id, or of its event and entry.
    /// Returns whether it is new.
    async fn import(&self, notification: Notification) -> Result<bool, Error>;
}
