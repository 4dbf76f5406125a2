//! Progress that a tool reports, collected for tests.

use std::sync::Arc;

use parking_lot::Mutex;
use talon_proto::notices as wire;

use crate::notices::progress_message;

/// How many reports [`ProgressLog`] keeps; further ones are dropped, as by a host.
const MAX_ENTRIES: usize = 10_000;

/// The progress of a call at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Which call.
    pub call_id: String,
    /// How far.
    pub progress: f64,
    /// Of how much, if that is known.
    pub total: Option<f64>,
    /// One line for people.
    pub message: String,
}

impl From<wire::Progress> for Progress {
    fn from(told: wire::Progress) -> Self {
        let wire::Progress { call_id, progress, total, message } = told;
        Self { call_id, progress, total, message }
    }
}

/// Collects all progress that a tool reports, and what it puts out; see [`Call::progress`](crate::testing::Call::progress). Cheap
/// to clone; clones share what they collected.
#[derive(Debug, Clone, Default)]
pub struct ProgressLog {
    told: Arc<Mutex<Vec<Progress>>>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl ProgressLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The reports so far, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<Progress> {
        self.told.lock().clone()
    }

    /// The lines that the tool put out so far ([`Context::output`](crate::Context::output)).
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    pub(crate) fn add_output(&self, text: &str) {
        let mut lines = self.lines.lock();
        let room = MAX_ENTRIES - lines.len();
        lines.extend(text.lines().take(room).map(str::to_owned));
    }

    pub(crate) fn add(&self, call_id: &str, progress: f64, total: Option<f64>, message: &str) {
        let mut told = self.told.lock();
        if told.len() < MAX_ENTRIES {
            told.extend(progress_message(call_id, progress, total, message).map(Progress::from));
        }
    }
}
