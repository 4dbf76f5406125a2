//! The outputs of the writer thread. No other thread may wait for a reader of the log.

use std::io::{self, Write};

use tracing::Level;

use super::journal::Journal;
use super::line::Line;
use super::queue_entry::QueueEntry;
use super::{Format, json, neutralize};

/// The destination of the log.
pub(crate) enum LogOutput {
    /// Stderr, as text.
    Text {
        /// Whether it is coloured.
        color: bool,
    },
    /// Stderr, as JSON.
    Json,
    /// The journal; stderr as JSON while it is unreachable.
    Journal {
        /// The connection to it.
        journal: Journal,
        /// Whether the last line could not be delivered.
        unreachable: bool,
    },
}

impl LogOutput {
    pub(crate) fn for_format(format: Format, color: bool) -> io::Result<Self> {
        Ok(match format {
            Format::Text => Self::Text { color },
            Format::Json => Self::Json,
            Format::Journald => Self::Journal { journal: Journal::from_env()?, unreachable: false },
        })
    }

    pub(crate) fn write(&mut self, entry: QueueEntry) {
        match entry {
            QueueEntry::Text(text) => {
                write_stderr(&neutralize::text(text, matches!(self, Self::Text { color: true })))
            }
            QueueEntry::Line(line) => self.line(&line),
            QueueEntry::Dropped(count) => {
                let message = format!("{count} log lines were dropped: they are read too slowly");
                match self {
                    Self::Text { .. } => {
                        write_stderr(format!("WARN talon_telemetry: {message}\n").as_bytes())
                    }
                    _ => self.line(&Line::internal(Level::WARN, message)),
                }
            }
        }
    }

    fn line(&mut self, line: &Line) {
        let Self::Journal { journal, unreachable: gone } = self else {
            return write_stderr(&json::line(line));
        };
        match journal.send(line) {
            Ok(()) if *gone => {
                *gone = false;
                let back = "the journal takes lines again; those since it was gone are on stderr";
                // Explains the gap to readers of the journal.
                let _ = journal.send(&Line::internal(Level::WARN, back.to_owned()));
            }
            Ok(()) => {}
            Err(error) => {
                if !*gone {
                    *gone = true;
                    let message = format!(
                        "the journal cannot be reached ({error}); lines go to stderr until it can: see whether \
                         systemd-journald runs, or set log.format"
                    );
                    write_stderr(&json::line(&Line::internal(Level::WARN, message)));
                }
                write_stderr(&json::line(line));
            }
        }
    }
}

/// Errors are ignored: a closed stderr leaves no place to report them.
fn write_stderr(line: &[u8]) {
    let _ = io::stderr().lock().write_all(line);
}
