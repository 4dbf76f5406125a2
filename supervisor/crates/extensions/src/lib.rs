//! Extension points: what an operator writes under `extensions`, and what an action promises that plays a role.
//!
//! An extension point is a role of an action: a fixed name, a schema of its arguments and of its structured answer, and a
//! rule for what becomes of it. A plugin says which roles an action would like to play; an entry of the configuration makes
//! it so, for any action. The supervisor checks entries with this crate, and the service that calls them runs them with it.
//! It has no runtime, no clock and no network.
//!
//! | module | content |
//! |---|---|
//! | [`role`] | the table of roles |
//! | [`Extensions`] | the keys of `extensions` |
//! | `hook`, `notification`, `route`, `auth`, `channel` | the keys of one entry of a list |
//! | `event` | the kinds of events |
//! | `quiet`, `scope` | hours without notifications; what a token's bearer may do |
//! | [`contract`] | what a role is asked and answers |
//! | `check` | whether the configuration makes sense: its [`Finding`]s |
//! | [`declaration`] | whether an action fits its entry |
//! | [`template`] | arguments for actions that know nothing of roles |
//! | [`page`] | the pages of `docs/extensions` |
//!
//! Another list of entries is a file of its own with its keys and checks, a field of [`Extensions`], and a line in
//! [`Extensions::entries`].

mod auth;
mod channel;
pub mod check;
pub mod contract;
pub mod declaration;
mod entry;
mod event;
mod extensions;
mod finding;
mod hook;
mod limits;
mod notification;
pub mod page;
mod quiet_hours;
pub mod role;
mod route;
mod schedule;
mod scope;
pub mod template;

pub use auth::AuthEntry;
pub use channel::{Activation, ChannelEntry, mentions};
pub use entry::{Entry, EntryKey};
pub use event::{EventKind, EventSeverity, UnknownKindError};
pub use extensions::{Extensions, ParseExtensionsError};
pub use finding::{Finding, Severity};
pub use hook::{Effect, FailurePolicy, HookEntry, StreamMode};
pub use limits::{
    MAX_DEADLINE, MAX_DIGEST_EVENTS, MAX_ENTRIES, MAX_NAME_CHARS, MAX_STORAGE_KEY_BYTES,
    MAX_STORAGE_PAGE_ITEMS, MAX_STORAGE_VALUE_BYTES,
};
pub use notification::NotificationEntry;
pub use quiet_hours::{ParseTimeOfDayError, QuietHours, TimeOfDay};
pub use role::Role;
pub use route::{RouteEntry, RouteMethod};
pub use scope::AccessScope;
pub use talon_schedule::{DeclaredJob, MAX_PROPOSALS, Proposal};
