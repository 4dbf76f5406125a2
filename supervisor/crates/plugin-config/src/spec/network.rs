//! Which network a plugin can reach.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a plugin may connect to; each gives more than the one before.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Nowhere: an empty network of its own, in which not even 127.0.0.1 answers.
    #[default]
    None,
    /// To itself: a network of its own with a loopback interface. It is not the host's: nothing of the host
    /// listens there.
    Loopback,
    /// To what `allow` names, through a proxy of the supervisor's, and nowhere else.
    Proxy,
    /// Wherever the host may, or TCP to and from `ports` where those are named.
    Full,
}

impl NetworkAccess {
    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loopback => "loopback",
            Self::Proxy => "proxy",
            Self::Full => "full",
        }
    }
}

// A constant, because `schemars` parses array expressions only where another crate enables that feature of
// `syn`.
const PORTS_EXAMPLE: [u16; 1] = [443];

/// The TCP ports of a plugin with `network: full`. Needs Landlock ABI 4 (Linux 6.7), which is then asked for
/// whatever the profile says. There is no UDP then: names are resolved over TCP, for which 53 has to be in
/// `connect`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxPorts {
    /// The ports that it may connect to; none with an empty list.
    #[schemars(extend("x-default" = "any"), inner(range(min = 1)), example = PORTS_EXAMPLE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Vec<u16>>,
    /// The ports that it may listen on; none with an empty list.
    #[schemars(extend("x-default" = "any"), inner(range(min = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<Vec<u16>>,
}

impl SandboxPorts {
    /// Whether any port may be used.
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.connect.is_none() && self.bind.is_none()
    }

    /// These ports where they are set, otherwise the wider ones.
    #[must_use]
    pub fn with_defaults(&self, wider: &Self) -> Self {
        Self {
            connect: self.connect.clone().or_else(|| wider.connect.clone()),
            bind: self.bind.clone().or_else(|| wider.bind.clone()),
        }
    }
}
