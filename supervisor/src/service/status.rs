//! How a service is, as its keeper knows.

use talon_sanitize::{Raw, Sanitized};

/// How a service is.
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
    /// What is wrong while it serves all the same, each with what to do.
    pub complaints: Vec<Sanitized>,
    /// Its process; 0 if there is none.
    pub pid: u32,
    /// The uid of that.
    pub uid: u32,
    /// How often it was started again.
    pub restarts: u64,
    /// Whether it refused to open its database, and whether that may pass.
    pub(crate) refused: Option<Passing>,
}

/// What a service does.
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
    /// It cannot be started before somebody changes something.
    Failed,
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
            Self::Failed => "failed",
        }
    }
}

/// Whether trying again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    Maybe,
    No,
}

impl KeeperStatus {
    /// It has opened its database: this one.
    pub(crate) fn opened(&mut self, engine: &str, place: &str) {
        self.engine = said(engine).into_string();
        self.place = said(place).into_string();
        self.refused = None;
    }

    /// It refused to open its database. Gives why, for the log.
    pub(crate) fn refused(&mut self, why: &str, may_pass: bool) -> Sanitized {
        let problem = said(why);
        self.refused = Some(if may_pass { Passing::Maybe } else { Passing::No });
        self.problem = Some(problem.clone());
        problem
    }
}

/// A text of the service's own on its way to people.
pub(crate) fn said(text: &str) -> Sanitized {
    /// The longest that is shown: a sentence with a path or two.
    const MAX_SHOWN_BYTES: usize = 2 << 10;
    Raw::from(text).line_within(MAX_SHOWN_BYTES)
}
