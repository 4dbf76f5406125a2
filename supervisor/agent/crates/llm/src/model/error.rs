//! Errors of providers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The class of a failure, which decides how it is handled.
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
    /// The provider could not be reached, or the connection broke. Retried, then falls back.
    Network,
    /// The provider was reached and failed: 5xx, an overload, an invalid answer. Falls back.
    Server,
    /// The request is wrong: 400, an unknown model. No fallback.
    Request,
}

/// A provider gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ProviderError {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The class of the failure.
    pub class: ErrorClass,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// A bounded sentence for people that says what happened and what to do; holds no key.
    pub message: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
}
