//! PostgreSQL: a server that several machines share, over a small pool of connections.

mod address;
mod change;
mod circuit_breaker;
mod error;
mod for_each_row;
mod group_commit;
mod integers;
mod key_values;
mod memory;
mod memory_vectors;
mod migrations;
mod notifications;
mod pgvector;
mod proposals;
mod schedule;
mod schema;
mod sessions;
mod settings;
mod shared_commit;
mod store;
mod text_search;
mod timeouts;
mod tls;

#[cfg(test)]
pub(crate) use migrations::MIGRATIONS;
pub(crate) use store::PostgresStore;
