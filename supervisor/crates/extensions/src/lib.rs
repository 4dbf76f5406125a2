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
//! | `hook` | the keys of one filter or hook |
//! | [`contract`] | what a role is asked and answers |
//! | `check` | whether the configuration makes sense: its [`Finding`]s |
//! | [`declaration`] | whether an action fits its entry |
//! | [`template`] | arguments for actions that know nothing of roles |
//! | [`page`] | the pages of `docs/extensions` |
//!
//! Another list of entries is a file of its own with its keys and checks, a field of [`Extensions`], and a line in
//! [`Extensions::entries`].

pub mod check;
pub mod contract;
pub mod declaration;
mod entry;
mod extensions;
mod finding;
mod hook;
mod limits;
pub mod page;
pub mod role;
mod schedule;
pub mod template;

pub use entry::{Entry, EntryKey};
pub use extensions::{Extensions, ParseExtensionsError};
pub use finding::{Finding, Severity};
pub use hook::{Effect, FailurePolicy, HookEntry, StreamMode};
pub use limits::{MAX_DEADLINE, MAX_ENTRIES, MAX_NAME_CHARS};
pub use role::Role;
