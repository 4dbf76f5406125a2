//! How log lines look.

use std::io::{IsTerminal, stderr};

use super::journal::stderr_is_the_journal;

/// How log lines look, and where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text for people, on stderr.
    #[default]
    Text,
    /// One JSON object a line, on stderr.
    Json,
    /// Entries of systemd's journal, with the fields kept as fields; on stderr as JSON while there is no journal.
    Journald,
}

impl Format {
    /// What suits this process's stderr: the journal if it is there already, as under systemd, text on a terminal, JSON
    /// for everything else.
    #[must_use]
    pub fn suiting_stderr() -> Self {
        if stderr_is_the_journal() {
            Self::Journald
        } else if stderr().is_terminal() {
            Self::Text
        } else {
            Self::Json
        }
    }
}
