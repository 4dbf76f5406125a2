//! An answer's bytes, within their time and size.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::causes;
use super::{Failure, Quote};
use crate::config::Timeouts;
use crate::limits::MAX_ANSWER_BYTES;
use crate::model::ErrorClass;

/// How long the end of a body is waited for after the end of its answer. It mostly comes with the last bytes, and lets the next
/// question use the connection; a new one costs about as long as this.
const REST_TIMEOUT: Duration = Duration::from_millis(100);
/// How much may come there.
const MAX_REST_BYTES: usize = 4096;

/// When what has to be there.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    timeouts: Timeouts,
    first: Instant,
    total: Instant,
}

/// Which time ran out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Late {
    First,
    Between,
    Total,
}

impl Clock {
    pub(crate) fn new(timeouts: &Timeouts, total: Instant) -> Self {
        Self { timeouts: *timeouts, first: Instant::now() + timeouts.first_token.get(), total }
    }

    /// The next deadline. `spoke`: the first word has come.
    pub(crate) fn deadline(&self, spoke: bool) -> (Instant, Late) {
        let step = if spoke {
            (Instant::now() + self.timeouts.between.get(), Late::Between)
        } else {
            (self.first, Late::First)
        };
        if self.total <= step.0 { (self.total, Late::Total) } else { step }
    }

    /// What it means that a deadline has passed.
    pub(crate) fn late(&self, late: Late) -> Failure {
        late.failure(&self.timeouts)
    }
}

impl Late {
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

/// The bytes of an answer. Dropping it closes the connection unless the answer was read to its end.
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
                let mut half = Failure::half();
                half.message.push_str(&format!(" ({})", Quote(&causes(&error))));
                Err(half)
            }
            Err(_) => Err(self.clock.late(late)),
        }
    }

    /// Reads what comes after the answer, so that the connection can be used again. Nothing of it matters.
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
        // Late or not: without its end the connection is closed, and the answer is whole either way.
        drop(timeout(REST_TIMEOUT, rest).await);
    }

    /// All of it.
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

    /// Its beginning, as far as it comes: the reason for an error is worth reading, and no reason for another one.
    pub(super) async fn start(&mut self, max_bytes: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < max_bytes {
            // The time between pieces is short enough for an error that should be there already.
            let Ok(Some(bytes)) = self.next(true).await else { break };
            start.extend_from_slice(&bytes[..bytes.len().min(max_bytes - start.len())]);
        }
        start
    }
}
