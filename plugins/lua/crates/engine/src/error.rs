//! Why a script cannot be loaded, or a call has no outcome.

use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Stop};
use crate::limits::{MAX_ERROR_BYTES, MAX_SOURCE_BYTES};

/// Why a script cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum LoadError {
    /// It is too large.
    #[error("it has {bytes} bytes, and {MAX_SOURCE_BYTES} are the most: split it into several scripts")]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// It is no text.
    #[error("it is not UTF-8 from byte {offset} on: save it as UTF-8")]
    NotText {
        /// Where it stops being text.
        offset: usize,
    },
    /// It does not compile; with the line.
    #[error("{0}")]
    Syntax(String),
    /// Its top level failed.
    #[error(transparent)]
    Run(CallError),
    /// It defines nothing that could be called, or not as it has to be.
    #[error("{0}")]
    Points(String),
}

/// Why a call has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct CallError {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// In words, with line and traceback where there are; at most [`MAX_ERROR_BYTES`].
    pub message: String,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The script raised an error.
    Raised,
    /// It passed its time. Its machine was thrown away.
    Deadline,
    /// It passed its memory. Its machine was thrown away.
    Memory,
    /// Who called it went away. Its machine was thrown away.
    Cancelled,
    /// It returned something that means nothing.
    Returned,
    /// The process that ran it ended, or was ended.
    Worker,
}

impl FailureKind {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Cancelled => "cancelled",
            Self::Returned => "returned",
            Self::Worker => "worker",
        }
    }
}

impl CallError {
    /// An error with a bounded text.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: bounded(message.into(), MAX_ERROR_BYTES) }
    }

    /// What an error of the machine means.
    pub(crate) fn of(error: &mlua::Error, clock: &Clock) -> Self {
        match clock.stop() {
            Some(stop) => Self::stopped(stop),
            None if is_memory(error) => Self::new(
                FailureKind::Memory,
                "the script passed its memory limit: keep less at once, or raise `limits.memory_mb`",
            ),
            None => Self::new(FailureKind::Raised, text(error)),
        }
    }

    pub(crate) fn stopped(stop: Stop) -> Self {
        match stop {
            Stop::Deadline => Self::new(
                FailureKind::Deadline,
                "the script passed its time limit: do less, or raise `limits.timeout_seconds`",
            ),
            Stop::Cancelled => Self::new(FailureKind::Cancelled, "the call was cancelled"),
        }
    }

    /// Whether the machine cannot be used any more.
    pub(crate) fn breaks_machine(&self) -> bool {
        matches!(self.kind, FailureKind::Deadline | FailureKind::Memory | FailureKind::Cancelled)
    }
}

fn is_memory(error: &mlua::Error) -> bool {
    match error {
        mlua::Error::MemoryError(_) => true,
        mlua::Error::CallbackError { cause, .. } => is_memory(cause),
        mlua::Error::WithContext { cause, .. } => is_memory(cause),
        _ => false,
    }
}

/// The error in the words of the script's author: without the prefixes of the binding.
fn text(error: &mlua::Error) -> String {
    match error {
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::CallbackError { traceback, cause } => format!("{}\n{traceback}", text(cause)),
        other => other.to_string(),
    }
}

/// The text of a syntax error.
pub(crate) fn syntax(error: &mlua::Error) -> LoadError {
    LoadError::Syntax(bounded(text(error), MAX_ERROR_BYTES))
}

/// At most so many bytes, without control characters that a terminal would obey.
pub(crate) fn bounded(text: String, most: usize) -> String {
    let mut text: String =
        text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect();
    if text.len() > most {
        let mut end = most - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}
