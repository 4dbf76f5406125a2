//! How long a provider may take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::TimeSpan;

/// How long each step of an answer may take. At the end of one the connection is closed, and the error is of the class
/// `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To connect, with DNS, TLS and the proxy.
    ///
    /// 10s: a connection takes less than one even around the world, and a dead address should not hold a turn up.
    pub connect: TimeSpan,
    /// From the question to the first word, thought or call.
    ///
    /// 2m: a local model may have to be loaded from disk first, and models that think silently answer late.
    pub first_token: TimeSpan,
    /// Between two pieces of an answer, after the first. Signs of life without content count as pieces.
    ///
    /// 1m: thinking models pause, but not for longer.
    pub between: TimeSpan,
    /// For the whole answer, with every key that is tried.
    ///
    /// 10m: more than the longest answers take. Anthropic gives up then, too.
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
