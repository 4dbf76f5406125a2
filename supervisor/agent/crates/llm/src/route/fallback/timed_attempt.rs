//! Runs one attempt, and ends it when no pieces arrive any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::listener::{AnswerListener, AttemptProgress, Relay};
use crate::model::{Answer, ErrorClass, ProviderError, Request};
use crate::provider::Provider;

/// A failed attempt.
pub(super) struct BrokenAttempt {
    pub(super) error: ProviderError,
    /// It ended because the whole request took too long, which says nothing about this provider.
    pub(super) out_of_patience: bool,
}

/// The time limits of an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The longest time without a piece.
    pub(super) silence: Duration,
    /// The end of the whole request.
    pub(super) deadline: Instant,
    /// The time limit of the whole request.
    pub(super) patience: Duration,
}

/// Asks a provider as long as pieces arrive and the request's time is not over.
pub(super) async fn ask_with_timeouts(
    provider: &Arc<dyn Provider>,
    request: &Request,
    listener: &mut dyn AnswerListener,
    signs: &AttemptProgress,
    bounds: Bounds,
) -> Result<Answer, BrokenAttempt> {
    let Bounds { silence, deadline, patience } = bounds;
    let timed_out = |message, out_of_patience| BrokenAttempt {
        error: ProviderError {
            provider: provider.name().to_owned(),
            class: ErrorClass::Timeout,
            status: None,
            message,
            retry_after: None,
        },
        out_of_patience,
    };
    let mut relay = Relay { listener, signs };
    let mut answer = std::pin::pin!(provider.ask(request, &mut relay));
    loop {
        let until = (signs.last() + silence).min(deadline);
        if let Ok(said) = timeout_at(until, &mut answer).await {
            return said.map_err(|error| BrokenAttempt { error, out_of_patience: false });
        }
        let now = Instant::now();
        if now >= signs.last() + silence {
            return Err(timed_out(format!("no sign of an answer for {} s", silence.as_secs()), false));
        }
        if now >= deadline {
            let message =
                format!("no whole answer when the {} s for all attempts were over", patience.as_secs());
            return Err(timed_out(message, true));
        }
    }
}
