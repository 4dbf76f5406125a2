//! Why a step failed.

use std::io;

use nix::errno::Errno;

/// Why a step failed.
#[derive(Debug)]
pub(super) struct StepError {
    /// What went wrong and what to do about it.
    pub(super) reason: String,
    /// Whether it is fatal in every mode, because it leaves the process in a state that cannot go on.
    pub(super) fatal: bool,
}

impl StepError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), fatal: false }
    }

    /// The same error, fatal in every mode.
    pub(super) fn fatal(self) -> Self {
        Self { fatal: true, ..self }
    }

    /// "cannot become uid 70003: Operation not permitted (run as root, …)"
    pub(super) fn errno(what: &str, errno: i32, advice: &str) -> Self {
        let why = Errno::from_raw(errno).desc();
        let advice = if advice.is_empty() { String::new() } else { format!(" ({advice})") };
        Self::new(format!("{what}: {why}{advice}"))
    }

    pub(super) fn io(what: &str, error: &io::Error, advice: &str) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::errno(what, errno, advice),
            None if advice.is_empty() => Self::new(format!("{what}: {error}")),
            None => Self::new(format!("{what}: {error} ({advice})")),
        }
    }
}
