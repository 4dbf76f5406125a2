//! Where a plugin may connect to, as written in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::Findings;
use crate::document::origin::KeyPath;
use crate::egress::{AllowList, EgressError, MAX_ENTRIES};

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

/// The TCP ports of a plugin with `network: full`. Needs Landlock ABI 4 (Linux 6.7), which is then asked for whatever the
/// profile says. UDP is not covered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxPorts {
    /// The ports that it may connect to; none with an empty list.
    #[schemars(extend("x-default" = "any"), inner(range(min = 1)), example = &[443u16])]
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

/// Checks the entries of an allow-list.
pub(super) fn check_allow_list(allow: &[String], path: &KeyPath, found: &mut Findings<'_>) {
    if allow.len() > MAX_ENTRIES {
        let message = format!("{} places, and at most {MAX_ENTRIES} are taken", allow.len());
        return found.problem(path, message, "name the hosts of one domain by *.DOMAIN:PORT");
    }
    for (index, entry) in allow.iter().enumerate() {
        if let Err(EgressError::Entry { problem, .. }) = AllowList::parse(std::slice::from_ref(entry)) {
            let text = problem.to_string();
            // The problem's text ends with the help in parentheses; here the help is separate.
            let (what, help) = text.split_once(" (").unwrap_or((&text, "correct it"));
            found.problem(&path.index(index), what, help.trim_end_matches(')'));
        }
    }
}
