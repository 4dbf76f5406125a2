//! SQLite: one file, one writer thread, a few reading connections.

mod backup;
mod cancellation;
mod closed;
mod connection;
mod database_file;
mod draft;
mod error;
mod free_space;
mod key_values;
mod lock;
mod memory;
mod memory_vectors;
mod migrations;
mod notifications;
mod proposals;
mod reader_pool;
mod restore;
mod schedule;
mod sessions;
mod store;
mod text_search;
mod wal;
mod writer;

pub(crate) use closed::ClosedSqlite;
#[cfg(test)]
pub(crate) use migrations::MIGRATIONS;
pub(crate) use store::SqliteStore;
