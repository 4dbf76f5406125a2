//! What the bearer of a token may do at the gateway.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessScope {
    /// Its own sessions.
    Chat,
    /// Decide approvals of its own sessions.
    Approve,
    /// Speak for the senders of one channel.
    Channel,
    /// What the role of that name may, under the gateway's ceiling.
    Operate,
    /// What the role of that name may, under the gateway's ceiling.
    Admin,
}

impl AccessScope {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Channel => "channel",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
