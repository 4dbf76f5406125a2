//! How the service is, as its keeper knows.

use talon_sanitize::{Raw, Sanitized};

/// How the service is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeeperStatus {
    /// What it does.
    pub state: KeeperState,
    /// `sqlite` or `postgres`, once it has opened its database.
    pub engine: String,
    /// The file, or the server without credentials.
    pub place: String,
    /// Why it does not serve; `None` if it does.
    pub problem: Option<Sanitized>,
    /// Its process; 0 if there is none.
    pub pid: u32,
    /// The uid of that.
    pub uid: u32,
    /// How often it was started again.
    pub restarts: u64,
    /// Whether it refused to open its database, and whether that may pass.
    pub(super) refused: Option<Passing>,
}

/// What the service does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeeperState {
    /// It opens its database.
    #[default]
    Starting,
    /// It answers.
    Serving,
    /// It runs, and its database does not answer.
    Unavailable,
    /// It ended, and will be started again.
    Backoff,
}

impl KeeperState {
    /// The word as the host API shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Unavailable => "unavailable",
            Self::Backoff => "backoff",
        }
    }
}

/// Whether trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    Maybe,
    No,
}

/// Why the service does not serve at the first start. The text ends with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("state cannot be kept: {why}")]
pub struct NotOpened {
    pub(super) why: String,
    /// Whether somebody else held the database, so that it may go away by itself.
    pub may_pass: bool,
}

/// A text of the service's own on its way to people.
pub(super) fn said(text: &str) -> Sanitized {
    /// The longest that is shown: a sentence with a path or two.
    const MAX_SHOWN_BYTES: usize = 2 << 10;
    Raw::from(text).line_within(MAX_SHOWN_BYTES)
}
