//! The plugins' key-values in a storage backend: an action of a plugin, in the role `storage_backend`.
//!
//! ```text
//! a plugin ─► plugin::Service ─► PluginKeyValues: names, quotas, pages, locks
//!                                  └► Backend: comparison, attempts ─► StorageCaller ─ host connection ─► guard ─► the action
//! ```
//!
//! A write is acknowledged when the backend said that it is durable. What an attempt without an answer did is found out by the
//! number of the write, which stands in the value ([`record`]).
//!
//! | module | content |
//! |---|---|
//! | `host_link` | connections to the host, requested over the control socket |
//! | `caller` | one call of the action |
//! | `record` | what is stored as the value of a key |
//! | `backend` | reads and conditional writes with attempts |
//! | `names` | plugins' keys as keys of the backend |
//! | `usage` | how much each plugin keeps |
//! | `key_values` | the store's interface |

mod backend;
mod caller;
mod host_link;
mod key_values;
mod names;
mod record;
mod usage;

pub(crate) use caller::HostCaller;
pub(crate) use host_link::{HostLink, HostLinkError};
pub(crate) use key_values::PluginKeyValues;
