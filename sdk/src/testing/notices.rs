//! What a plugin tells unasked, for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talon_proto::notices as wire;
use talon_proto::notices::notice::Kind;
use tonic::{Status, Streaming};

use crate::notices::made;

/// How many [`ProgressLog`] keeps; a tool that tells more often than this has the rest dropped, as a host would.
const MAX_KEPT: usize = 10_000;

/// How far a call had come.
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

/// One thing that a plugin told unasked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// By [`Context::progress`](crate::Context::progress).
    Progress(Progress),
    /// By [`Notifier::capabilities_changed`](crate::Notifier::capabilities_changed).
    CapabilitiesChanged,
}

/// What a plugin tells unasked, in order; see [`Host::listen`](super::Host::listen).
#[derive(Debug)]
pub struct Notices {
    stream: Streaming<wire::Notice>,
}

impl Notices {
    pub(super) fn new(stream: Streaming<wire::Notice>) -> Self {
        Self { stream }
    }

    /// Waits for the next one; `None` once the plugin ends, or somebody else listens. It waits for ever for one that never
    /// comes: give it a timeout, or let the test runner have one.
    ///
    /// # Errors
    /// The gRPC status.
    pub async fn next(&mut self) -> Result<Option<Notice>, Status> {
        while let Some(notice) = self.stream.message().await? {
            match notice.kind {
                Some(Kind::Progress(progress)) => return Ok(Some(Notice::Progress(progress.into()))),
                Some(Kind::CapabilitiesChanged(_)) => return Ok(Some(Notice::CapabilitiesChanged)),
                None => {}
            }
        }
        Ok(None)
    }
}

/// Collects what a tool tells of its progress, all of it; see [`Call::progress`](super::Call::progress). Cheap to clone; clones
/// share what they collected.
#[derive(Debug, Clone, Default)]
pub struct ProgressLog {
    told: Arc<Mutex<Vec<Progress>>>,
}

impl ProgressLog {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was told so far, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Progress> {
        self.lock().clone()
    }

    pub(crate) fn add(&self, call_id: &str, progress: f64, total: Option<f64>, message: &str) {
        let mut told = self.lock();
        if told.len() < MAX_KEPT {
            told.extend(made(call_id, progress, total, message).map(Progress::from));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Progress>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
