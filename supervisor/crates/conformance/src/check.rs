//! The definition of a check.

/// The consequence if a plugin does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The plugin is wrong: the check fails.
    Must,
    /// The plugin works but may cause trouble: the check warns.
    Should,
}

impl Level {
    /// The name of the level.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
        }
    }
}

/// The plugins that a check applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applicability {
    /// All of them.
    All,
    /// Those that do the handshake themselves. Behind a bridge (`mcp`, `opentalon-v0`) the bridge does it.
    Direct,
    /// Those that use go-plugin's dialect in the handshake.
    GoPlugin,
}

impl Applicability {
    /// A description for the documentation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "every plugin",
            Self::Direct => "plugins that shake hands themselves; behind a bridge the bridge does",
            Self::GoPlugin => "plugins that shake hands in go-plugin's dialect",
        }
    }
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Its stable name, `group.what`.
    pub id: &'static str,
    /// What holds if it passes, in a few words.
    pub title: &'static str,
    /// What the check does.
    pub tries: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What to do if it does not pass.
    pub mend: &'static str,
    /// The consequence if it does not pass.
    pub level: Level,
    /// The plugins that it applies to.
    pub about: Applicability,
    /// The anchor of the heading in `docs/protocol.md` that specifies the requirement.
    pub section: &'static str,
    pub(crate) test: Test,
}

impl Check {
    /// The first part of its id.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.id.split('.').next().unwrap_or(self.id)
    }

    /// The link to its paragraph, relative to the root of the repository.
    #[must_use]
    pub fn paragraph(&self) -> String {
        format!("docs/conformance.md#{}", anchor(self.id))
    }

    /// The link to the requirement in the protocol, relative to the root of the repository.
    #[must_use]
    pub fn protocol(&self) -> String {
        format!("docs/protocol.md#{}", self.section)
    }
}

/// The anchor of a heading: lower case, hyphens for spaces, no other punctuation.
#[must_use]
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// The test that performs a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    StartHandshake,
    StartStrayOutput,
    StartSingleLine,
    StartCookie,
    HandshakeLine,
    HandshakeVersion,
    HandshakeUnofferedVersion,
    HandshakeAddress,
    HandshakeSocketMode,
    HandshakeServes,
    InitSettings,
    InitEmptyConfig,
    InitUnknownKeys,
    CapabilitiesAnswered,
    CapabilitiesNames,
    CapabilitiesDuplicates,
    CapabilitiesSchemas,
    CapabilitiesSizes,
    CapabilitiesStable,
    CapabilitiesRoles,
    HealthServing,
    HealthUnknownService,
    ExecuteEchoId,
    ExecuteDecodes,
    ExecuteRoles,
    ExecuteStorageRevisions,
    ExecuteStorageScans,
    ExecuteStorageBytes,
    ExecuteStorageRefusals,
    ExecuteStorageDurable,
    ExecuteUnknownAction,
    ExecuteMissingArguments,
    ExecuteUnknownArgument,
    ExecuteHostileArguments,
    ExecuteConcurrent,
    ExecuteCancelled,
    ExecuteDeadline,
    ExecuteLargeAnswer,
    HealthAfterCalls,
    EventsResent,
    OutputCalls,
    OutputFlood,
    StopShutdown,
    StopSigterm,
    StopNothingLeft,
    JailStrict,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_links_as_the_page_shows_them() {
        assert_eq!(anchor("execute.echo-id"), "executeecho-id");
        assert_eq!(anchor("2. The handshake"), "2-the-handshake");
    }
}
