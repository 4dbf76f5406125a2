//! Why there is no answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What kind of failure it was, which decides what is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The key is missing, wrong or not allowed this. Another provider would hide that: no fallback.
    Auth,
    /// Too many requests. Falls back at once.
    RateLimit,
    /// No answer in time. Tried again, then falls back.
    Timeout,
    /// The transcript is too long for the model. Another provider would not help: no fallback.
    Context,
    /// The account has no credit left. Falls back at once.
    Billing,
    /// It could not be reached, or the connection broke. Tried again, then falls back.
    Network,
    /// It is reached and cannot: 5xx, an overload, an answer that is none. Falls back.
    Server,
    /// The request is wrong: 400, an unknown model. No fallback.
    Request,
}

/// A provider gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ProviderError {
    /// Which one, by its name in the configuration.
    pub provider: String,
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// A bounded sentence for people that says what happened and what to do; holds no key.
    pub message: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
}
