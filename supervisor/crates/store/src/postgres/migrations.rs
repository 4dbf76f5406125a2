//! The schema of a database, version by version.

use crate::migrate::{Migration, migrations};

/// The migrations from an empty schema to the current one.
pub(crate) const MIGRATIONS: &[Migration] = migrations! {
    1 => "migrations/0001_key_values.sql",
    2 => "migrations/0002_sessions.sql",
    3 => "migrations/0003_memory.sql",
    4 => "migrations/0004_memory_vectors.sql",
    5 => "migrations/0005_schedule.sql",
    6 => "migrations/0006_notifications.sql",
    7 => "migrations/0007_schedule_actions.sql",
    8 => "migrations/0008_job_proposals.sql",
    9 => "migrations/0009_message_keys.sql",
    10 => "migrations/0010_sessions_by_sender.sql",
};
