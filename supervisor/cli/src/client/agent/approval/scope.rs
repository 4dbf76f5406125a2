//! How far an approval reaches.

use clap::ValueEnum;

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::client::agent) enum Scope {
    /// This call alone.
    Once,
    /// Such calls in this session.
    Session,
    /// Such calls in all sessions of this sender.
    Always,
}

impl Scope {
    /// As the agent names it.
    pub(in crate::client::agent) fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}
