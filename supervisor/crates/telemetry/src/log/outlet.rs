//! The outputs of the writer thread. No other thread may wait for a reader of the log.

use std::io::{self, Write};

use tracing::Level;

use super::journal::Journal;
use super::line::Line;
use super::writer::Entry;
use super::{Format, inert, json};

/// The destination of the log.
pub(crate) enum Outlet {
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
        gone: bool,
    },
}

impl Outlet {
    pub(crate) fn of(format: Format, color: bool) -> io::Result<Self> {
        Ok(match format {
            Format::Text => Self::Text { color },
            Format::Json => Self::Json,
            Format::Journald => Self::Journal { journal: Journal::of_environment()?, gone: false },
        })
    }

    pub(crate) fn write(&mut self, entry: Entry) {
        match entry {
            Entry::Text(text) => stderr(&inert::text(text, matches!(self, Self::Text { color: true }))),
            Entry::Line(line) => self.line(&line),
            Entry::Dropped(count) => {
                let message = format!("{count} log lines were dropped: they are read too slowly");
                match self {
                    Self::Text { .. } => stderr(format!("WARN talon_telemetry: {message}\n").as_bytes()),
                    _ => self.line(&Line::own(Level::WARN, message)),
                }
            }
        }
    }

    fn line(&mut self, line: &Line) {
        let Self::Journal { journal, gone } = self else { return stderr(&json::line(line)) };
        match journal.send(line) {
            Ok(()) if *gone => {
                *gone = false;
                let back = "the journal takes lines again; those since it was gone are on stderr";
                // Explains the gap to readers of the journal.
                let _ = journal.send(&Line::own(Level::WARN, back.to_owned()));
            }
            Ok(()) => {}
            Err(error) => {
                if !*gone {
                    *gone = true;
                    let message = format!(
                        "the journal cannot be reached ({error}); lines go to stderr until it can: see whether \
                         systemd-journald runs, or set log.format"
                    );
                    stderr(&json::line(&Line::own(Level::WARN, message)));
                }
                stderr(&json::line(line));
            }
        }
    }
}

/// Errors are ignored: a closed stderr leaves no place to report them.
fn stderr(line: &[u8]) {
    let _ = io::stderr().lock().write_all(line);
}
