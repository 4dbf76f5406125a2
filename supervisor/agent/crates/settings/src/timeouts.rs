//! Timeouts of a provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::TimeSpan;

/// How long each step of an answer may take. When a timeout passes, the connection is closed and the error
/// has the class `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To connect, including DNS, TLS and the proxy.
    ///
    /// 10s: a connection takes less than one second even around the world, and a dead address should not
    /// delay a turn.
    pub connect: TimeSpan,
    /// From the question to the first text, thought or call.
    ///
    /// 2m: a local model may have to be loaded from disk first, and models that think silently answer late.
    pub first_token: TimeSpan,
    /// Between two pieces of an answer, after the first. Keep-alive messages count as pieces.
    ///
    /// 1m: thinking models pause, but no longer than that.
    pub between: TimeSpan,
    /// For the whole answer, including all keys that are tried.
    ///
    /// 10m: more than the longest answers take. Anthropic has the same limit.
    pub total: TimeSpan,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: TimeSpan::from_secs(10),
            first_token: TimeSpan::from_secs(120),
            between: TimeSpan::from_secs(60),
            total: TimeSpan::from_secs(600),
        }
    }
}
