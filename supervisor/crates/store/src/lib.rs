//! Durable state: the plugins' key-values, the conversations, the memory.
//!
//! Six interfaces with a trait each, [`KeyValues`], [`Sessions`], [`Memory`], [`Schedule`], [`JobProposals`] and
//! [`Outbox`], and two engines that implement all of them: SQLite, in a local file, and PostgreSQL, which several machines can share.
//! [`StoreOptions`] opens a [`Store`] with either. No other crate of Talon uses SQL.
//!
//! | guarantee | SQLite | PostgreSQL |
//! |---|---|---|
//! | an acknowledged write is on the disk | log synced at each commit | `synchronous_commit` is never off here |
//! | concurrent writers share an fsync | one transaction for all that wait | one for all of a plugin that wait |
//! | two writers to one session take turns | the file's write lock | the session's row is locked |
//! | a damaged or newer database is not changed | checked by a read-only connection | the version is checked first |
//! | calls do not wait for an unreachable server | | calls fail at once between attempts to reconnect |
//!
//! [`Store::backup`] copies a SQLite store to a file while others write to it. [`Store::restore`] replaces
//! the contents of the store by such a copy, also while it is in use. [`StoreOptions::open_for_restore`] does
//! so where the file cannot be opened any more. PostgreSQL has its own tools for both.
//!
//! A PostgreSQL server on another machine is reached over TLS and has to prove its identity, see
//! [`Engine::Postgres`].
//!
//! Nothing here checks permissions: a plugin's namespace is an argument, and the calling service has to know
//! which plugin it serves.

mod backup;
mod change;
mod counters;
mod error;
mod id;
mod invalid;
mod key_values;
pub mod limits;
mod memory;
mod migrate;
mod notification;
mod open;
mod open_error;
mod opened_for_restore;
mod options;
mod page;
mod postgres;
mod proposal;
mod schedule;
mod search;
mod session;
mod sqlite;
mod store;
mod time;
mod vector;

pub use backup::{BackupInfo, POSTGRES_BACKUP, POSTGRES_RESTORE, Restored};
pub use counters::Counters;
pub use error::{Error, Resource, Source};
pub use id::{Key, MemoryId, PluginId, SessionId};
pub use invalid::InvalidError;
pub use key_values::{Entry, KeySize, KeyValues, Namespace, Quota, SwapResult, Usage};
pub use memory::{
    ForgetSelector, Memory, MemoryQuery, MemoryVectors, NearMemory, NearestMemories, NearestQuery, NewMemory,
    OWNER_TAG, RecalledWorkflow, Spread, Step, StoredMemory, UpsertedMemory, VectorCounts, VectorEngine,
    WORKFLOW_TAG, Workflow,
};
pub use notification::{
    FoldedNotifications, GroupKey, NewNotification, Notification, NotificationBatch, NotificationChange,
    NotificationClaim, NotificationCounts, NotificationEnd, NotificationFilter, NotificationHandle,
    NotificationState, Outbox,
};
pub use open_error::{Holder, OpenError};
pub use opened_for_restore::OpenedForRestore;
pub use options::{Engine, StoreOptions};
pub use page::{Page, PageRequest, PageToken};
pub use proposal::{
    DeclaredProposals, JobProposal, JobProposals, NewProposal, ProposalDecision, ProposalState,
};
pub use schedule::{
    Claim, JobTiming, NewOccurrence, Occurrence, OccurrenceKind, OccurrenceState, Plan, RunEnd, RunHandle,
    RunResult, Schedule, ScheduledJob,
};
pub use session::{
    Compaction, Expected, ExportedSession, Message, MessageHit, NewMessage, NewSession, Overrides, Role,
    Session, SessionChange, SessionFilter, SessionQuery, SessionState, Sessions, View,
};
pub use store::Store;
pub use time::Timestamp;
pub use vector::Vector;

/// The namespace of the agent's parked calls and approval rules, in its own database and thus no plugin's.
pub const APPROVALS_NAMESPACE: &str = "agent-approvals";
/// The prefix of the keys of approval rules there: their ids follow, and their values are JSON.
pub const APPROVAL_RULE_PREFIX: &str = "rule/";
/// The namespace of the agent's shadow loop, in its own database: what is known of a person's observations, ghosts, and the log
/// of what was sent.
pub const SHADOW_NAMESPACE: &str = "agent-shadow";
/// The namespace of the agent's channels, in its own database: messages that are not answered yet, and how far the plugins' events were
/// read.
pub const CHANNELS_NAMESPACE: &str = "agent-channels";
/// The namespace of the agent's images and files, in its own database. Its name is older than files. A key is
/// `SESSION/TIME.DIGEST/PIECE`.
pub const MEDIA_NAMESPACE: &str = "agent-images";
