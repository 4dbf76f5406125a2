//! Reads a response within its time and size limits.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::causes;
use super::{Failure, Quote};
use crate::config::Timeouts;
use crate::limits::MAX_ANSWER_BYTES;
use crate::model::ErrorClass;

/// How long to wait for the end of a body after the end of its answer. It usually comes with the last bytes,
/// and lets the next request reuse the connection; a new one costs about as long as this.
const REST_TIMEOUT: Duration = Duration::from_millis(100);
/// The most bytes that may follow.
const MAX_REST_BYTES: usize = 4096;

/// The deadlines of a response.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    timeouts: Timeouts,
    first: Instant,
    total: Instant,
}

/// The deadline that passed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeoutKind {
    First,
    Between,
    Total,
}

impl Clock {
    pub(crate) fn new(timeouts: &Timeouts, total: Instant) -> Self {
        Self { timeouts: *timeouts, first: Instant::now() + timeouts.first_token.get(), total }
    }

    /// The next deadline. `spoke`: the answer has begun.
    pub(crate) fn deadline(&self, spoke: bool) -> (Instant, TimeoutKind) {
        let step = if spoke {
            (Instant::now() + self.timeouts.between.get(), TimeoutKind::Between)
        } else {
            (self.first, TimeoutKind::First)
        };
        if self.total <= step.0 { (self.total, TimeoutKind::Total) } else { step }
    }

    /// The failure for a passed deadline.
    pub(crate) fn timeout_failure(&self, late: TimeoutKind) -> Failure {
        late.failure(&self.timeouts)
    }
}

impl TimeoutKind {
    fn failure(self, timeouts: &Timeouts) -> Failure {
        let message = match self {
            Self::First => format!(
                "it said nothing within {} (timeouts.first_token): ask again, or give it longer if its model is loaded first",
                timeouts.first_token
            ),
            Self::Between => format!(
                "it fell silent for {} in the middle of its answer (timeouts.between): what came of it is not used; ask again",
                timeouts.between
            ),
            Self::Total => format!(
                "its answer took longer than {} (timeouts.total): ask for less at once, or give it longer",
                timeouts.total
            ),
        };
        Failure::new(ErrorClass::Timeout, message)
    }
}

/// A response's bytes. Dropping it closes the connection unless it was read to its end.
pub(super) struct Body {
    response: Response,
    clock: Clock,
    read_bytes: usize,
}

impl Body {
    pub(super) fn new(response: Response, clock: Clock) -> Self {
        Self { response, clock, read_bytes: 0 }
    }

    /// The next bytes; `None` at the end.
    pub(super) async fn next(&mut self, spoke: bool) -> Result<Option<Bytes>, Failure> {
        let (deadline, late) = self.clock.deadline(spoke);
        match timeout_at(deadline, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.read_bytes = self.read_bytes.saturating_add(bytes.len());
                if self.read_bytes > MAX_ANSWER_BYTES {
                    return Err(Failure::too_large("its answer", MAX_ANSWER_BYTES));
                }
                Ok(Some(bytes))
            }
            Ok(Ok(None)) => Ok(None),
            Ok(Err(error)) => {
                let mut half = Failure::truncated();
                half.message.push_str(&format!(" ({})", Quote(&causes(&error))));
                Err(half)
            }
            Err(_) => Err(self.clock.timeout_failure(late)),
        }
    }

    /// Discards what follows the answer, so that the connection can be reused.
    pub(super) async fn rest(&mut self) {
        let mut read_bytes = 0;
        let rest = async {
            while let Ok(Some(bytes)) = self.response.chunk().await {
                read_bytes += bytes.len();
                if read_bytes > MAX_REST_BYTES {
                    return;
                }
            }
        };
        // If it does not end in time, the connection is closed; the answer is complete either way.
        drop(timeout(REST_TIMEOUT, rest).await);
    }

    /// Reads the whole body.
    pub(super) async fn whole(&mut self, max_bytes: usize) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next(false).await? {
            if whole.len() + bytes.len() > max_bytes {
                return Err(Failure::too_large("its answer", max_bytes));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }

    /// Reads the beginning of an error body, as far as it arrives: its text is useful, but reading it must
    /// not fail.
    pub(super) async fn start(&mut self, max_bytes: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < max_bytes {
            // The time between pieces is short enough for an error body.
            let Ok(Some(bytes)) = self.next(true).await else { break };
            start.extend_from_slice(&bytes[..bytes.len().min(max_bytes - start.len())]);
        }
        start
    }
}
