//! The formats of log lines.

use std::io::{IsTerminal, stderr};

use super::journal::stderr_is_the_journal;

/// The format of log lines and their destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text for people, on stderr.
    #[default]
    Text,
    /// One JSON object a line, on stderr.
    Json,
    /// Entries of systemd's journal, with fields; on stderr as JSON while the journal is unreachable.
    Journald,
}

impl Format {
    /// The format that fits this process's stderr: the journal if stderr is connected to it, as under
    /// systemd; text on a terminal; otherwise JSON.
    #[must_use]
    pub fn for_stderr() -> Self {
        if stderr_is_the_journal() {
            Self::Journald
        } else if stderr().is_terminal() {
            Self::Text
        } else {
            Self::Json
        }
    }
}
