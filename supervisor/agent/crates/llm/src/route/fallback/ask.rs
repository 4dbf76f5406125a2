//! Asks the chain: routes a request, and tries its candidates.

use std::time::Duration;

use talon_agent_settings::milliseconds;
use tokio::time::Instant;

use super::attempt::Answered;
use super::chain::{Chain, ChainRequest};
use super::event::Event;
use super::exhausted::{ExhaustedError, ExhaustedReason};
use super::listener::{AnswerEvent, AnswerListener};
use super::run::Run;
use crate::model::ErrorClass;
use crate::route::catalog::ModelRef;
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
            Err(error) => self.route_after_rest(ask, error, started, listener).await?,
        };
        self.observer.on_event(&Event::Routed {
            session: ask.session,
            task: ask.task,
            judgement: &judgement,
            route: &route,
        });
        Run::new(self, ask, listener, started, judgement.complexity).try_candidates(&route).await
    }

    /// Routes a request. If every model rests, but one not beyond the request's deadline, waits once.
    async fn route_after_rest(
        &self,
        ask: &ChainRequest<'_>,
        error: RouteError,
        started: Instant,
        listener: &mut dyn AnswerListener,
    ) -> Result<(ComplexityEstimate, Route), ExhaustedError> {
        let deadline = ask.deadline(started, self.settings.patience);
        let error = match Self::shortest_rest(&error).filter(|(rest, _)| started + *rest < deadline) {
            Some((wait, model)) => {
                listener.on_event(AnswerEvent::Waiting { model, wait, class: ErrorClass::RateLimit });
                tokio::time::sleep(wait).await;
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

    /// The shortest rest of a model that could answer otherwise, and the model.
    fn shortest_rest(error: &RouteError) -> Option<(Duration, ModelRef)> {
        let rest = |model: &ModelRef, why: &RejectionReason| match why {
            RejectionReason::Out(Outage::RateLimited { retry_in }) => Some((*retry_in, model.clone())),
            _ => None,
        };
        match error {
            RouteError::PinUnfit { model, why } => rest(model, why),
            RouteError::NoneFits { passed_over } => {
                passed_over.iter().filter_map(|one| rest(&one.model, &one.why)).min_by_key(|(time, _)| *time)
            }
            RouteError::UnknownPin(_) | RouteError::NoModels => None,
        }
    }
}
