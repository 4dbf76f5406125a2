//! Limits of a plugin's calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{ByteSize, Duration};

/// Limits of a plugin's calls where they differ from `guard`. A key that is left out keeps the wider value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallLimits {
    /// As `guard.timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// As `guard.max_response_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<ByteSize>,
    /// As `guard.max_structured_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_structured_bytes: Option<ByteSize>,
    /// As `guard.max_argument_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_argument_bytes: Option<ByteSize>,
    /// As `guard.max_message_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_message_bytes: Option<ByteSize>,
    /// As `guard.concurrency`.
    #[schemars(range(min = 1, max = 100_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// As `guard.queue`.
    #[schemars(range(max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
}
