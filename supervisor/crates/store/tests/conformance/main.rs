//! What both engines promise, by the same cases, and what each promises alone.
#![expect(clippy::unwrap_used, reason = "a test: what cannot be unwrapped is its failure")]

mod copies;
mod crash;
mod files;
mod key_values;
mod memory;
mod memory_vectors;
mod notifications;
mod properties;
mod proposals;
mod schedule;
mod server;
mod sessions;
mod support;
mod tls;
mod upgrades;

use support::{on_postgres, on_sqlite};

// Promises: SHADOW-97, STORE-1
#[test]
fn sqlite_key_values() {
    on_sqlite(key_values::CASES);
}

// Promises: SHADOW-97, STORE-1
#[test]
fn postgres_key_values() {
    on_postgres("postgres_key_values", key_values::CASES);
}

// Promises: STATE-31, STORE-1
#[test]
fn sqlite_sessions() {
    on_sqlite(sessions::CASES);
}

// Promises: STATE-31, STORE-1
#[test]
fn postgres_sessions() {
    on_postgres("postgres_sessions", sessions::CASES);
}

// Promises: STORE-1
#[test]
fn sqlite_memory() {
    on_sqlite(memory::CASES);
}

// Promises: STORE-1
#[test]
fn postgres_memory() {
    on_postgres("postgres_memory", memory::CASES);
}

// Promises: STORE-4
#[test]
fn sqlite_memory_vectors() {
    on_sqlite(memory_vectors::CASES);
}

// Promises: STORE-4
#[test]
fn postgres_memory_vectors() {
    on_postgres("postgres_memory_vectors", memory_vectors::CASES);
}

// Promises: EXT-36, STORE-1
#[test]
fn sqlite_schedule() {
    on_sqlite(schedule::CASES);
}

// Promises: EXT-36, STORE-1
#[test]
fn postgres_schedule() {
    on_postgres("postgres_schedule", schedule::CASES);
}

// Promises: EXT-161, STORE-1
#[test]
fn sqlite_proposals() {
    on_sqlite(proposals::CASES);
}

// Promises: EXT-161, STORE-1
#[test]
fn postgres_proposals() {
    on_postgres("postgres_proposals", proposals::CASES);
}

// Promises: EXT-53, STORE-1
#[test]
fn sqlite_notifications() {
    on_sqlite(notifications::CASES);
}

// Promises: EXT-53, STORE-1
#[test]
fn postgres_notifications() {
    on_postgres("postgres_notifications", notifications::CASES);
}
