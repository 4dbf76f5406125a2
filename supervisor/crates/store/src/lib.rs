//! State that is never lost: the plugins' key-values, the conversations, the memory.
//!
//! Three layers with a trait each, [`KeyValues`], [`Sessions`] and [`Memory`], and two engines that have all of
//! them: SQLite, in a file of one's own, and PostgreSQL, which several machines can share. [`Open`] opens a
//! [`Store`] with either. No other crate of Talon speaks SQL.
//!
//! | promise | SQLite | PostgreSQL |
//! |---|---|---|
//! | what was acknowledged is on the disk | log synced at each commit | `synchronous_commit` is never off here |
//! | writers at once share an fsync | one transaction for all that wait | one for all of a plugin that wait |
//! | two writers to one session take turns | the file's write lock | the session's row is locked |
//! | a damaged or newer database is left as it is | examined by a connection that cannot write | the version is asked first |
//! | a server that is gone keeps nobody waiting | | calls fail at once between attempts, which go on by themselves |
//!
//! [`Store::backup`] copies a SQLite store to a file while others write to it, [`Store::restore`] puts such a copy in the
//! place of all that is there, also while it is in use, and [`Open::open_for_restore`] does where the file is past
//! opening. PostgreSQL has its own means for both.
//!
//! A PostgreSQL server on another machine is reached over TLS and has to prove who it is, see [`Engine::Postgres`].
//!
//! Nothing here decides who may ask: a plugin's namespace is an argument, and it is for the service to know which
//! plugin is at the other end.

mod backup;
mod error;
mod id;
mod key_values;
pub mod limits;
mod memory;
mod migrate;
mod open;
mod page;
mod postgres;
mod search;
mod session;
mod sqlite;
mod store;
mod time;

pub use backup::{BackupInfo, OpenedForRestore, POSTGRES_BACKUP, POSTGRES_RESTORE, Restored};
pub use error::{Error, Resource, Source};
pub use id::{Key, MemoryId, PluginId, SessionId};
pub use key_values::{Entry, KeySize, KeyValues, Namespace, Quota, Swap, Usage};
pub use memory::{
    Forget, Memory, MemoryQuery, NewMemory, OWNER_TAG, Recalled, Remembered, Step, StoredMemory,
    WORKFLOW_TAG, Workflow,
};
pub use open::{Engine, Holder, Open, OpenError};
pub use page::{Page, PageRequest, PageToken};
pub use session::{
    Compaction, Expected, ExportedSession, Message, MessageHit, NewMessage, NewSession, Overrides, Role,
    Session, SessionChange, SessionFilter, SessionQuery, SessionState, Sessions, View,
};
pub use store::{Counters, Store};
pub use time::Timestamp;
