//! The guard stacks, assembled. The first list is the one in `ARCHITECTURE.md`.

use talon_guard::{
    AdmissionGauge, AdmissionLayer, Answer, BreakerGauge, BreakerLayer, Call, CallError, DeadlineLayer,
    Directory, Guard, GuardSettings, LayerKind, Oversize, Pages, Quarantine, QuarantineLayer, RawAnswer,
    RawStore, RescueLayer, ResolveLayer, Stack, Stopwatch, Taint, TaintLayer, TraceLayer, ValidateLayer,
};
use talon_sanitize::Sanitizer;
use tower::{Service, ServiceBuilder};

use super::offload::DeferLarge;
use crate::config::{CallPolicy, GuardStores};

/// Handles for reading the state of a stack.
#[derive(Clone)]
pub(super) struct StackGauges {
    pub(super) admission: AdmissionGauge,
    pub(super) breaker: BreakerGauge,
}

/// The layers and stores that all stacks of a dispatcher share.
pub(super) struct SharedLayers {
    pub(super) sanitizer: Sanitizer,
    /// `None` if texts over their limit are cut.
    pub(super) pages: Option<Pages>,
    pub(super) raw: RawStore,
    /// Measures the layers of all stacks.
    pub(super) watch: Stopwatch,
    taint: Option<Taint>,
}

impl SharedLayers {
    pub(super) fn new(stores: &GuardStores, sanitizer: Sanitizer) -> Self {
        Self {
            pages: stores.pages.map(|settings| Pages::new(settings, sanitizer.clone())),
            raw: RawStore::new(stores.raw_bytes),
            watch: Stopwatch::new(),
            taint: stores.taint.then(Taint::default),
            sanitizer,
        }
    }

    /// Takes over the stores of `before` whose limits did not change. Pages stay as the patterns of their
    /// time neutralized them.
    pub(super) fn reuse(&mut self, before: &Self, old: &GuardStores, new: &GuardStores, same_patterns: bool) {
        self.watch = before.watch.clone();
        if old.pages == new.pages && same_patterns {
            self.pages.clone_from(&before.pages);
        }
        if old.raw_bytes == new.raw_bytes {
            self.raw = before.raw.clone();
        }
        if old.taint == new.taint {
            self.taint.clone_from(&before.taint);
        }
    }

    fn taint_layer(&self) -> Option<TaintLayer> {
        self.taint.clone().map(TaintLayer::new)
    }

    /// The guard's sanitize, truncate and wrap layers.
    fn guard(&self, policy: &CallPolicy, oversize: Oversize) -> Guard {
        let settings = GuardSettings {
            envelope: policy.envelope,
            max_response_bytes: policy.max_response_bytes,
            max_structured_bytes: policy.max_structured_bytes,
            oversize,
            ..GuardSettings::default()
        };
        Guard::with_sanitizer(self.sanitizer.clone(), settings)
    }
}

/// Assembles the stack of a plugin. Calls pass the layers from top to bottom, answers from bottom to top.
pub(super) fn build<D, S>(
    trace: TraceLayer,
    policy: CallPolicy,
    shared: &SharedLayers,
    quarantine: Quarantine,
    directory: D,
    innermost: S,
) -> (Stack, StackGauges)
where
    D: Directory,
    S: Service<Call, Response = RawAnswer, Error = CallError> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let breaker = BreakerLayer::new(policy.breaker);
    let admission = AdmissionLayer::new(policy.admission);
    let gauges = StackGauges { admission: admission.gauge(), breaker: breaker.gauge() };
    let guard = shared.guard(&policy, shared.pages.clone().map_or(Oversize::Cut, Oversize::Paged));
    let resolve = ResolveLayer::new(directory, policy.grants).max_argument_bytes(policy.max_argument_bytes);
    // Layers are timed only while metrics are being read.
    let watch = &shared.watch;
    let stack = ServiceBuilder::new()
        // Span and metrics: outermost, because it sees every outcome.
        .layer(watch.layer(LayerKind::Trace, trace))
        // Taint tracking of arguments: above the envelope, because it fingerprints the content that really
        // goes out.
        .option_layer(shared.taint_layer().map(|taint| watch.layer(LayerKind::Taint, taint)))
        // The envelope: the last change of the content, so that nothing inside can imitate it.
        .layer(watch.layer(LayerKind::Wrap, guard.wrap_layer()))
        // The size limit: on sanitized text, so that the limit is what the model gets.
        .layer(watch.layer(LayerKind::Truncate, guard.truncate_layer()))
        // Control syntax is neutralized: in content, error and structured content alike.
        .layer(watch.layer(LayerKind::Sanitize, guard.sanitize_layer().reporting_to(quarantine.clone())))
        // Errors become answers: inside sanitize, because error texts come from plugins too.
        .layer(watch.layer(LayerKind::Rescue, RescueLayer::new()))
        // The answer's call id and types: on the raw message, before its text is touched.
        .layer(watch.layer(LayerKind::Validate, ValidateLayer::with_store(shared.raw.clone())))
        // Plugin, action and arguments: refused calls never wake a plugin.
        .layer(watch.layer(LayerKind::Resolve, resolve))
        // Rejects calls to a quarantined plugin, before any waiting.
        .layer(watch.layer(LayerKind::Quarantine, QuarantineLayer::new(quarantine)))
        // The deadline: above all layers that wait, so that waiting counts.
        .layer(watch.layer(LayerKind::Deadline, DeadlineLayer::new(policy.timeouts)))
        // Rejects calls to a plugin that keeps failing: above the queue, so that they do not queue.
        .layer(watch.layer(LayerKind::Breaker, breaker))
        // A bounded queue and a concurrency limit: right above the plugin that they protect.
        .layer(watch.layer(LayerKind::Admission, admission))
        .service(watch.service(LayerKind::Instance, DeferLarge(innermost)));
    (Stack::new(stack), gauges)
}

/// Assembles the stack of the supervisor's own actions. They answer at once and from memory, so they need no
/// layers for waiting and failing, and there is no message to validate.
pub(super) fn build_core<D, S>(policy: CallPolicy, shared: &SharedLayers, directory: D, innermost: S) -> Stack
where
    D: Directory,
    S: Service<Call, Response = Answer, Error = CallError> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    // Long texts are cut and not stored again: the pages they come from are stored already.
    let guard = shared.guard(&policy, Oversize::Cut);
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new(talon_plugin_config::name::RESERVED_NAME))
        .option_layer(shared.taint_layer())
        .layer(guard.wrap_layer())
        .layer(guard.truncate_layer())
        .layer(guard.sanitize_layer())
        .layer(RescueLayer::new())
        .layer(ResolveLayer::new(directory, policy.grants).max_argument_bytes(policy.max_argument_bytes))
        .service(innermost);
    Stack::new(stack)
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
