//! Asks the chain: routes a request, and tries its candidates.

use std::time::Duration;

use talon_agent_settings::milliseconds;
use tokio::time::Instant;

use super::attempt::Answered;
use super::chain::{Chain, ChainRequest};
use super::event::Event;
use super::exhausted::{ExhaustedError, ExhaustedReason};
use super::listener::AnswerListener;
use super::run::Run;
use crate::route::complexity::ComplexityEstimate;
use crate::route::router::{Outage, RejectionReason, Route, RouteError};

impl Chain {
    /// Asks one model after the other until one answers. Dropping the future cancels the request; the pieces
    /// received until then are charged.
    ///
    /// # Errors
    /// [`ExhaustedError`], with all attempts.
    pub async fn ask(
        &self,
        ask: &ChainRequest<'_>,
        listener: &mut dyn AnswerListener,
    ) -> Result<Answered, ExhaustedError> {
        let started = Instant::now();
        let (judgement, route) = match self.route(ask) {
            Ok(routed) => routed,
            Err(error) => self.route_after_rest(ask, error, started).await?,
        };
        self.observer.on_event(&Event::Routed {
            session: ask.session,
            task: ask.task,
            judgement: &judgement,
            route: &route,
        });
        Run::new(self, ask, listener, started, judgement.complexity).try_candidates(&route).await
    }

    /// Routes a request. If every model rests, but one only for an acceptable time, waits once.
    async fn route_after_rest(
        &self,
        ask: &ChainRequest<'_>,
        error: RouteError,
        started: Instant,
    ) -> Result<(ComplexityEstimate, Route), ExhaustedError> {
        let longest = self.settings.retry.retry_after_max.min(self.settings.patience);
        let error = match shortest_rest(&error).filter(|rest| *rest <= longest) {
            Some(rest) => {
                tokio::time::sleep(rest).await;
                match self.route(ask) {
                    Ok(routed) => return Ok(routed),
                    Err(error) => error,
                }
            }
            None => error,
        };
        let passed_over = match &error {
            RouteError::NoneFits { passed_over } => passed_over.clone(),
            _ => Vec::new(),
        };
        let total_latency_ms = milliseconds(started.elapsed());
        Err(ExhaustedError {
            reason: ExhaustedReason::NoRoute(Box::new(error)),
            attempts: Vec::new(),
            skipped: passed_over,
            total_latency_ms,
        })
    }
}

/// The shortest rest of a model that could answer otherwise.
fn shortest_rest(error: &RouteError) -> Option<Duration> {
    let rest = |why: &RejectionReason| match why {
        RejectionReason::Out(Outage::RateLimited { retry_in }) => Some(*retry_in),
        _ => None,
    };
    match error {
        RouteError::PinUnfit { why, .. } => rest(why),
        RouteError::NoneFits { passed_over } => passed_over.iter().filter_map(|one| rest(&one.why)).min(),
        RouteError::UnknownPin(_) | RouteError::NoModels => None,
    }
}
