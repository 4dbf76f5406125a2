//! What the return of a function means.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a function of a script made of what it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Of filters and hooks: the message goes on.
    Continue {
        /// The new message; `None` if it is the same text.
        message: Option<String>,
        /// What it set in `ctx.metadata`: new keys, and other values of old ones.
        metadata: BTreeMap<String, String>,
    },
    /// Of filters and hooks: the message goes no further.
    Drop {
        /// Why; may be empty.
        reason: String,
    },
    /// Of `on_event`.
    Delivery {
        /// What became of it.
        status: DeliveryStatus,
        /// Why; may be empty.
        reason: String,
        /// The least time until the next attempt, in seconds, of a retry.
        after_seconds: Option<u64>,
    },
    /// Of `task`: what it says of its run.
    Text(String),
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is delivered.
    Delivered,
    /// Not yet.
    Retry,
    /// Never.
    Refused,
}
