//! The guard stack of one plugin, assembled. This list is the one in `ARCHITECTURE.md`.

use std::convert::Infallible;

use talon_guard::{
    AdmissionGauge, AdmissionLayer, BreakerGauge, BreakerLayer, Call, CallError, DeadlineLayer, Directory,
    Guarded, RawAnswer, RescueLayer, ResolveLayer, SanitizeLayer, TraceLayer, TruncateLayer, ValidateLayer,
    WrapLayer,
};
use talon_sanitize::Sanitizer;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder};

use crate::config::CallPolicy;

/// A whole stack. Clones share the layers' state: one breaker, one queue.
pub(super) type Stack = BoxCloneSyncService<Call, Guarded, Infallible>;

/// What a host may read of a stack.
#[derive(Clone)]
pub(super) struct Gauges {
    pub(super) admission: AdmissionGauge,
    pub(super) breaker: BreakerGauge,
}

/// Assembles a stack. Calls go down the list, answers come up.
pub(super) fn build<D, S>(
    trace: TraceLayer,
    policy: CallPolicy,
    sanitizer: &Sanitizer,
    directory: D,
    innermost: S,
) -> (Stack, Gauges)
where
    D: Directory,
    S: Service<Call, Response = RawAnswer, Error = CallError> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let breaker = BreakerLayer::new(policy.breaker);
    let admission = AdmissionLayer::new(policy.admission);
    let truncate = TruncateLayer::new(policy.max_response_bytes, sanitizer.clone())
        .max_structured_bytes(policy.max_structured_bytes);
    let sanitize = SanitizeLayer::new(sanitizer.clone())
        .for_response_limit(policy.max_response_bytes.max(policy.max_structured_bytes));
    let gauges = Gauges { admission: admission.gauge(), breaker: breaker.gauge() };
    let stack = ServiceBuilder::new()
        // The span and the metrics: outermost, because it sees every outcome.
        .layer(trace)
        // The envelope: the last thing done to content, so that nothing inside can be taken for it.
        .layer(WrapLayer::new())
        // The size limit: on sanitized text, so that the limit is what the model gets.
        .layer(truncate)
        // Control syntax made inert: in content, error and structured content alike.
        .layer(sanitize)
        // Errors become answers: inside sanitize, because error texts come from plugins too.
        .layer(RescueLayer::new())
        // The answer's call id and types: on the raw message, before its text is touched.
        .layer(ValidateLayer::new())
        // Plugin, action and arguments: refused calls never wake a plugin.
        .layer(ResolveLayer::new(directory, policy.grants).max_argument_bytes(policy.max_argument_bytes))
        // The instant after which nobody waits: above all waiting, so that waiting counts.
        .layer(DeadlineLayer::new(policy.timeouts))
        // Leaves a plugin alone that keeps failing: above the queue, so that nobody queues for it.
        .layer(breaker)
        // A bounded queue, then so many at once: right above what it protects.
        .layer(admission)
        .service(innermost);
    (BoxCloneSyncService::new(stack), gauges)
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
