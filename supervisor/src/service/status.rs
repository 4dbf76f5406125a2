//! The status of a managed service.

use talon_sanitize::{Raw, Sanitized};

/// The status of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedServiceStatus {
    /// Its state.
    pub state: ManagedServiceState,
    /// `sqlite` or `postgres`, once it has opened its database.
    pub engine: String,
    /// The database file, or the server without credentials.
    pub place: String,
    /// Why it does not serve, or not all requests; `None` if it serves.
    pub problem: Option<Sanitized>,
    /// Problems that do not stop it from serving, each with what to do.
    pub complaints: Vec<Sanitized>,
    /// The pid of its process; 0 if there is none.
    pub pid: u32,
    /// The uid of its process.
    pub uid: u32,
    /// How often it was restarted.
    pub restarts: u64,
    /// Whether it refused to open its database, and whether a retry may help.
    pub(crate) refused: Option<RetryHint>,
}

/// The state of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ManagedServiceState {
    /// It is opening its database.
    #[default]
    Starting,
    /// It serves requests.
    Serving,
    /// It answers reads and refuses writes, because there is no room for them.
    Full,
    /// It runs, but its database does not answer.
    Unavailable,
    /// Its process does not answer; it is killed if that lasts.
    Unresponsive,
    /// It ended, and will be restarted.
    Backoff,
    /// It cannot be started without a change by the operator.
    Failed,
}

impl ManagedServiceState {
    /// Whether a process runs that has opened its database.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Serving | Self::Full | Self::Unavailable | Self::Unresponsive)
    }

    /// Whether it answers requests, if not all of them.
    pub(crate) fn answers(self) -> bool {
        matches!(self, Self::Serving | Self::Full)
    }

    /// The state's name in the host API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Unresponsive => "unresponsive",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
        }
    }
}

/// Whether a retry may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryHint {
    Maybe,
    No,
}

impl ManagedServiceStatus {
    /// Records that it has opened this database.
    pub(crate) fn set_opened(&mut self, engine: &str, place: &str) {
        self.engine = sanitize_report(engine).into_string();
        self.place = sanitize_report(place).into_string();
        self.refused = None;
    }

    /// Records that it serves: everything, or reads alone, because there is no room for writes.
    pub(crate) fn set_full(&mut self, full: &str) {
        (self.state, self.problem) = if full.is_empty() {
            (ManagedServiceState::Serving, None)
        } else {
            (ManagedServiceState::Full, Some(sanitize_report(full)))
        };
    }

    /// Records that it refused to open its database. Returns the reason, for the log.
    pub(crate) fn set_refused(&mut self, why: &str, may_pass: bool) -> Sanitized {
        let problem = sanitize_report(why);
        self.refused = Some(if may_pass { RetryHint::Maybe } else { RetryHint::No });
        self.problem = Some(problem.clone());
        problem
    }
}

/// Sanitizes a text from the service for display.
pub(crate) fn sanitize_report(text: &str) -> Sanitized {
    /// Maximum length of a displayed text: a sentence with a path or two.
    const MAX_SHOWN_BYTES: usize = 2 << 10;
    Raw::from(text).line_within(MAX_SHOWN_BYTES)
}
