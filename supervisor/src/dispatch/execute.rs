//! One call, from the host API to the plugin and back.
//!
//! ```text
//! host.sock ─► execute ─► accept: peer, grant, ids, origin, scope, target
//!                 └─► AcceptedCall::run ─► Dispatcher::run: counters, event
//!     audit record, response ◄──┘              └─► stack: trace ─► … ─► admission ─► PluginService ─► plugin
//! ```
//!
//! The file has the order of the call. The registry and the grant are read once, in `target`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use talon_agent_settings::{CHANNEL_KEY, SENDER_KEY};
use talon_extensions::Role as ExtensionRole;
use talon_guard::input_request::check_response;
use talon_guard::{
    AdmissionLayer, Answer, ArcById, BreakerLayer, Call, CallError, DeadlineLayer, Directory, Guard, Guarded,
    LayerKind, Origin, OutputObserver, Oversize, ProgressObserver, Quarantine, QuarantineLayer, RawAnswer,
    RescueLayer, ResolveLayer, SanitizeLayer, Stack, TraceLayer, ValidateLayer,
};
use talon_plugin::{Executor, Plugin};
use talon_plugin_config::name::RESERVED_NAME;
use talon_proto::host::{ExecuteRequest, ExecuteResponse};
use tonic::{Request, Response, Status};
use tower::{Layer, Service, ServiceBuilder};

use super::call_finished::{CallFinishedEvent, CallSummary};
use super::call_id::{CallId, call_id};
use super::call_log::{NewCall, RunningCall};
use super::dispatcher::{Dispatcher, DrainingError};
use super::executor::EXECUTOR;
use super::grant::grant_for;
use super::layer_verdicts::layers;
use super::plugin_request::{call_error, plugin_request};
use super::request_context::{log, scope, session, trace, trace_id};
use super::response::response;
use super::role_call::role_call;
use super::role_meter::RoleMeter;
use super::shared_layers::SharedLayers;
use super::stack_entry::{CoreEntry, StackEntry, StackGauges};
use crate::audit::{Audit, CallRecording};
use crate::config::{CallPolicy, Role};
use crate::peer::require;
use crate::receipts::{ReceiptDraft, Receipts};
use crate::to_wire::draining;

/// `Execute`: one guarded call. Every outcome but a draining supervisor and a bad request is an answer.
pub(crate) async fn execute(
    dispatcher: &Dispatcher,
    audit: &Audit,
    receipts: &Receipts,
    request: Request<ExecuteRequest>,
) -> Result<Response<ExecuteResponse>, Status> {
    let accepted = accept(dispatcher, audit, receipts, request, None)?;
    Ok(Response::new(accepted.run(dispatcher).await?))
}

/// Who receives what is said of a call while it runs.
pub(super) struct CallObservers {
    pub(super) progress: ArcById<dyn ProgressObserver>,
    pub(super) output: ArcById<dyn OutputObserver>,
}

/// A call that passed all checks of the request. Its recording in the audit log has begun.
pub(super) struct AcceptedCall {
    /// The id that the caller uses.
    requested_id: String,
    call: Call,
    target: CallTarget,
    recording: CallRecording,
    receipt: Option<ReceiptDraft>,
    running: RunningCall,
    /// Whether the caller is told what each layer did.
    tells_layers: bool,
}

/// What comes in: who calls, with which rights, for whom, and where to.
pub(super) fn accept(
    dispatcher: &Dispatcher,
    audit: &Audit,
    receipts: &Receipts,
    request: Request<ExecuteRequest>,
    observers: Option<CallObservers>,
) -> Result<AcceptedCall, Status> {
    let permitted = require(&request, Role::Call)?;
    let trace = trace(&request);
    let trace_id = trace_id(&request);
    let request = request.into_inner();
    let (tells_layers, measured) = (permitted.peer.is_agent(), request.measured);
    let mut role = role_call(&permitted.peer, &request, || dispatcher.config())?;
    if let Some(role) = &mut role
        && role.needs_proposal
        && !dispatcher.proposes_job(&request.plugin, &request.action, &request.extension)
    {
        role.refuse_unlisted();
    }
    if let Some(role) = &mut role
        && role.needs_declaration
        && !dispatcher.declares_role(&request.plugin, &request.action, role.role)
    {
        role.refuse_undeclared();
    }
    let granted = match &role {
        Some(role) => role.grant(),
        None => grant_for(&permitted.peer, &request, || dispatcher.config())?,
    };
    let CallId { requested: requested_id, unique } = call_id(request.call_id)?;
    let origin = if request.for_model { Origin::Model } else { permitted.origin };
    let mut call = Call::new(unique, request.plugin, request.action, origin);
    call.set_arguments(request.args, &request.arguments_json);
    call.wants_media = request.wants_media;
    call.takes_input_requests = request.takes_input_requests;
    if let Some(response) = request.input_response {
        check_response(&response).map_err(|error| Status::invalid_argument(error.to_string()))?;
        call.input_response = Some(Box::new(response));
    }
    // The agent keeps them from its models, and needs them to write back what a plugin said.
    call.wants_originals = permitted.peer.is_agent();
    call.granted = granted;
    if let Some(CallObservers { progress, output }) = observers {
        (call.progress_observer, call.output_observer) = (Some(progress), Some(output));
    }
    call.trace = trace;
    call.context = request.context;
    if let Some(delegation) = &permitted.peer.delegation {
        // Whatever the gateway wrote there.
        call.context.insert(SENDER_KEY.to_owned(), delegation.subject.to_string());
        call.context.insert(CHANNEL_KEY.to_owned(), delegation.channel.to_string());
    }
    call.scope = scope(&permitted.peer.principal(), &call.context);
    if let Some(role) = &role {
        // In place of session and sender.
        (call.origin, call.role) = (Origin::System, Some(role.role.as_str()));
        call.opaque = role.role == ExtensionRole::StorageBackend;
        call.scope = format!("{}:extension/{}", permitted.peer.uid, role.label).into();
    }
    call.timeout = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
    log(&permitted.peer, &call);
    let target = dispatcher.target(&mut call);
    let plugin = target.plugin().filter(|_| audit.is_on());
    let digest = plugin.and_then(Plugin::digest).unwrap_or_default();
    let session = role.as_ref().map_or_else(|| session(&call.context), |role| &role.label);
    let recording = audit.call(&permitted.peer, session, &call, digest);
    let receipt = receipts.draft(&permitted.peer, session, &call);
    let (running, timings) = dispatcher.calls.begin(NewCall {
        subject: crate::audit::subject(&permitted.peer, &call),
        session,
        trace_id,
        // An auth provider's have somebody's credential.
        arguments: (dispatcher.raw_bytes() > 0 && call.role != Some(ExtensionRole::AuthProvider.as_str()))
            .then(|| crate::audit::arguments_json(&call)),
        call: &call,
        measured: (tells_layers && measured) || dispatcher.events.has_subscribers(),
    });
    call.layer_timings = timings;
    Ok(AcceptedCall { requested_id, call, target, recording, receipt, running, tells_layers })
}

impl AcceptedCall {
    /// Executes the call and records its end. Dropping the future cancels the call down to the plugin.
    pub(super) async fn run(self, dispatcher: &Dispatcher) -> Result<ExecuteResponse, Status> {
        let Self { requested_id, call, target, recording, receipt, running, tells_layers } = self;
        let accepted = call.accepted;
        let Ok(guarded) = dispatcher.run(call, target).await else {
            recording.discard();
            return Err(draining());
        };
        let ended = running.finish(&guarded);
        let layers = if tells_layers { layers(&ended) } else { Vec::new() };
        recording.finish(&guarded).await;
        let receipt = receipt.map(|receipt| receipt.sign(&guarded));
        Ok(ExecuteResponse { receipt, layers, ..response(requested_id, guarded, accepted.elapsed()) })
    }
}

/// Where a call goes. Found once, and passed along.
enum CallTarget {
    /// The supervisor's own actions.
    Core(Arc<CoreEntry>),
    Plugin(Plugin, Arc<StackEntry>),
    /// No such plugin, or none that the caller may know of: a stack that refuses.
    Unknown(Arc<StackEntry>),
}

impl CallTarget {
    fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Plugin(plugin, _) => Some(plugin),
            Self::Core(_) | Self::Unknown(_) => None,
        }
    }
}

impl Dispatcher {
    /// Executes a call without a request. Dropping the future cancels the call, also in the plugin.
    ///
    /// # Errors
    /// [`DrainingError`]: the call was not started, and another supervisor may take it.
    pub async fn call(&self, mut call: Call) -> Result<Guarded, DrainingError> {
        let target = self.target(&mut call);
        self.run(call, target).await
    }

    fn target(&self, call: &mut Call) -> CallTarget {
        if *call.plugin == *RESERVED_NAME
            && let Some(core) = &self.current.load().core
        {
            return CallTarget::Core(Arc::clone(core));
        }
        // Calls that are not granted are refused before the lookup, so that neither the answer nor its timing
        // reveals whether the plugin exists.
        let plugin = if call.is_granted() { self.registry.get(&call.plugin) } else { None };
        match plugin {
            Some(plugin) => {
                let entry = self.entry(&plugin);
                CallTarget::Plugin(plugin, entry)
            }
            None => CallTarget::Unknown(Arc::clone(&self.current.load().unknown_plugin)),
        }
    }

    /// Runs a call through its stack, counts it and emits its event.
    async fn run(&self, call: Call, target: CallTarget) -> Result<Guarded, DrainingError> {
        // The token is taken before the check, so that drain counts every call that passed it.
        let _in_flight = self.in_flight.token();
        // What calls in flight keep is still written.
        let keeps_state = call.role == Some(ExtensionRole::StorageBackend.as_str());
        if self.is_draining() && !keeps_state {
            return Err(DrainingError);
        }
        let (stack, counters) = match &target {
            CallTarget::Core(core) => (&core.stack, &core.counters),
            CallTarget::Plugin(_, entry) | CallTarget::Unknown(entry) => (&entry.stack, &entry.counters),
        };
        let plugin = target.plugin();
        let of_role =
            call.role.map(|role| RoleMeter::start(role, plugin.map(|plugin| plugin.name().to_string())));
        let summary = CallSummary::of(&call);
        let counted = counters.begin(&summary, plugin);
        let mut finished = CallFinishedEvent::watch(&self.events, &summary, plugin.map(Plugin::name));
        if let Some(plugin) = plugin {
            self.wait_for_capabilities(plugin, &call).await;
        }
        let answer = stack.call(call).await;
        counted.finish(&answer);
        if let Some(of_role) = of_role {
            of_role.finish(&answer);
        }
        finished.set_result(&answer);
        if let CallTarget::Plugin(plugin, entry) = &target {
            entry.report_quarantine(plugin, &self.events);
        }
        Ok(answer)
    }
}

/// The layers of every stack, from the outermost. Calls pass them from top to bottom, answers from bottom to
/// top. `below` are those around `innermost`, which differ: see [`plugin_stack`] and [`core_stack`].
fn stack<L, S>(
    trace: TraceLayer,
    shared: &SharedLayers,
    guard: &Guard,
    sanitize: SanitizeLayer,
    below: L,
    innermost: S,
) -> Stack
where
    L: Layer<S>,
    L::Service:
        Service<Call, Response = Answer, Error = CallError, Future: Send> + Clone + Send + Sync + 'static,
{
    // Layers are timed only while metrics are being read.
    let watch = &shared.watch;
    let layers = ServiceBuilder::new()
        // Span and metrics: outermost, because it sees every outcome.
        .layer(watch.layer(LayerKind::Trace, trace))
        // Taint tracking of arguments: above the envelope, because it fingerprints the content that goes out.
        .option_layer(shared.taint_layer().map(|taint| watch.layer(LayerKind::Taint, taint)))
        // The envelope: the last change of the content, so that nothing inside can imitate it.
        .layer(watch.layer(LayerKind::Wrap, guard.wrap_layer()))
        // The size limit: on sanitized text, so that the limit is what the model gets.
        .layer(watch.layer(LayerKind::Truncate, guard.truncate_layer()))
        // Control syntax is neutralized: in content, error and structured content alike.
        .layer(watch.layer(LayerKind::Sanitize, sanitize))
        // Errors become answers: inside sanitize, because error texts come from plugins too.
        .layer(watch.layer(LayerKind::Rescue, RescueLayer::new()))
        .layer(below)
        .service(innermost);
    Stack::new(layers)
}

/// The stack of a plugin: below the common layers, those that accept, refuse and wait.
pub(super) fn plugin_stack<S>(
    trace: TraceLayer,
    policy: CallPolicy,
    shared: &SharedLayers,
    quarantine: Quarantine,
    directory: impl Directory,
    innermost: S,
) -> (Stack, StackGauges)
where
    S: Service<Call, Response = RawAnswer, Error = CallError, Future: Send> + Clone + Send + Sync + 'static,
{
    let guard = shared.guard(&policy, shared.pages.clone().map_or(Oversize::Cut, Oversize::Paged));
    let validate = ValidateLayer::with_store(shared.raw.clone()).executor(EXECUTOR);
    let resolve = ResolveLayer::new(directory, policy.grants).max_argument_bytes(policy.max_argument_bytes);
    let (breaker, admission) = (BreakerLayer::new(policy.breaker), AdmissionLayer::new(policy.admission));
    let gauges = StackGauges { admission: admission.gauge(), breaker: breaker.gauge() };
    let watch = &shared.watch;
    let below = ServiceBuilder::new()
        // The answer's call id and types: on the raw message, before its text is touched.
        .layer(watch.layer(LayerKind::Validate, validate))
        // Plugin, action and arguments: refused calls never wake a plugin.
        .layer(watch.layer(LayerKind::Resolve, resolve))
        // Rejects calls to a quarantined plugin, before any waiting.
        .layer(watch.layer(LayerKind::Quarantine, QuarantineLayer::new(quarantine.clone())))
        // The deadline: above all layers that wait, so that waiting counts.
        .layer(watch.layer(LayerKind::Deadline, DeadlineLayer::new(policy.timeouts)))
        // Rejects calls to a plugin that keeps failing: above the queue, so that they do not queue.
        .layer(watch.layer(LayerKind::Breaker, breaker))
        // A bounded queue and a concurrency limit: right above the plugin that they protect.
        .layer(watch.layer(LayerKind::Admission, admission));
    let innermost = watch.service(LayerKind::Instance, innermost);
    let sanitize = guard.sanitize_layer().reporting_to(quarantine);
    (stack(trace, shared, &guard, sanitize, below, innermost), gauges)
}

/// The stack of the supervisor's own actions. They answer at once and from memory, so they need no layers for
/// waiting and failing, and there is no message to validate.
pub(super) fn core_stack<S>(
    policy: CallPolicy,
    shared: &SharedLayers,
    directory: impl Directory,
    innermost: S,
) -> Stack
where
    S: Service<Call, Response = Answer, Error = CallError, Future: Send> + Clone + Send + Sync + 'static,
{
    // Long texts are cut and not stored again: the pages they come from are stored already.
    let guard = shared.guard(&policy, Oversize::Cut);
    let resolve = ResolveLayer::new(directory, policy.grants).max_argument_bytes(policy.max_argument_bytes);
    let below = shared.watch.layer(LayerKind::Resolve, resolve);
    stack(TraceLayer::new(RESERVED_NAME), shared, &guard, guard.sanitize_layer(), below, innermost)
}

/// The bottom of a plugin's stack: sends calls to the plugin's instances.
#[derive(Clone)]
pub(super) struct PluginService {
    pub(super) plugin: Plugin,
    pub(super) executor: Executor,
}

impl PluginService {
    /// The plugin's own name of the action, if it is offered under another, and whether the plugin declares that it
    /// changes nothing.
    fn declared(&self, action: &str) -> (Option<String>, bool) {
        let Some(capability) = self.plugin.capability() else { return (None, false) };
        let read_only = capability.actions.get(action).is_some_and(|action| action.read_only);
        (capability.escaped.get(action).cloned(), read_only)
    }
}

impl Service<Call> for PluginService {
    type Response = RawAnswer;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<RawAnswer, CallError>> + Send>>;

    /// Always ready: waiting for an instance is part of the call, inside its deadline.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let executor = self.executor.clone();
        // Read before the call: an answer is judged by the declaration under which it was made.
        let (own_name, read_only) = self.declared(&call.action);
        let has_one_instance = self.plugin.spec().instances <= 1;
        Box::pin(async move {
            let plugin = call.plugin.clone();
            let mut request = plugin_request(call);
            // What a process keeps of a question is not known to another one.
            request.message.takes_input_requests &= has_one_instance;
            if let Some(own_name) = own_name {
                request.message.action = own_name;
            }
            executor
                .execute(request)
                .await
                .map(RawAnswer)
                .map_err(|error| call_error(&plugin, read_only, error))
        })
    }
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;
