//! Logs the events of a chain.

use tracing::{debug, info, warn};

use super::event::{Event, EventObserver};
use crate::route::breaker::{BreakerState, Change};
use crate::route::retry;

/// Logs events at the levels of the founding documents: the selected model and its usage are `debug`, a
/// failed attempt and a fallback `warn`. A provider that recovers is `info`.
///
/// The span of the request says which turn it belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Log;

impl EventObserver for Log {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Routed { session, task, judgement, route } => {
                let first = route.candidates.first();
                let model = first.map(|candidate| candidate.model.to_string());
                let (points, candidates) = (judgement.points, route.candidates.len());
                let complexity = judgement.complexity.word();
                let tier = route.wanted.word();
                debug!(%session, task = task.word(), complexity, points, tier, model, candidates, "a model was chosen");
            }
            Event::Attempt { session, attempt, .. } => {
                let (provider, model, latency_ms) = (&attempt.provider, &attempt.model, attempt.latency_ms);
                match &attempt.error {
                    None => {
                        debug!(%session, %provider, %model, latency_ms, cost = %attempt.cost, "a model answered")
                    }
                    Some(error) => {
                        let (class, error) = (retry::word(error.class), &error.message);
                        warn!(%session, %provider, %model, latency_ms, class, %error, "a model gave no answer");
                    }
                }
            }
            Event::Retry { model, retry, wait, class } => {
                debug!(%model, retry, ?wait, class = retry::word(*class), "a model is asked again");
            }
            Event::FellBack { from, to, class } => {
                warn!(%from, to = %to.model, class = retry::word(*class), "another model is asked");
            }
            Event::Withdrawn { model, chars } => debug!(%model, chars, "what was said is taken back"),
            Event::Charged { session, model, charge, .. } => {
                let usage = charge.usage;
                debug!(
                    %session, %model, cost = %charge.cost, estimated = charge.estimated,
                    input_tokens = usage.input_tokens, cached_input_tokens = usage.cached_input_tokens,
                    output_tokens = usage.output_tokens, "charged"
                );
            }
            Event::OverBudget { session, over } => warn!(%session, "{over}"),
            Event::Rests { provider, model, class, time } => {
                warn!(%provider, model, class = retry::word(*class), ?time, "left alone for a while");
            }
            Event::Breaker { provider, change: Change { from, to } } => match to {
                BreakerState::Open => warn!(%provider, ?from, "a provider keeps failing and is left alone"),
                BreakerState::HalfOpen => debug!(%provider, "a provider is tried again"),
                BreakerState::Closed => info!(%provider, "a provider is well again"),
            },
            Event::Probed { provider, failed } => {
                debug!(%provider, failed = failed.map(retry::word), "a provider was probed");
            }
        }
    }
}
