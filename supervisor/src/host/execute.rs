//! `Execute`: one guarded call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use talon_guard::{
    ArcById, Call, Guarded, Origin, Outcome, Parts, ProgressObserver, Report, SESSION_KEY, TraceContext,
};
use talon_proto::host::{
    self, ExecuteRequest, ExecuteResponse, ExecuteUpdate, GuardReport, Progress, execute_update,
};
use talon_sanitize::Sanitized;
use talon_telemetry::CallTrace;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};
use tracing::Span;

use super::authorization;
use super::authorized_peer::require;
use super::call_id::{CallId, call_id};
use super::context::HostContext;
use super::to_wire::{draining, wire};
use crate::audit::CallRecording;
use crate::config::Role;

/// Maximum length of a session id. Real ones are far shorter. It is the key of a table, so it has to be
/// bounded.
const MAX_SESSION_CHARS: usize = 128;

/// How many progress updates are buffered for a slow reader; then the oldest are dropped. Enough for about a
/// second.
const PROGRESS_ROOM: usize = 16;

pub(super) async fn execute(
    context: &HostContext,
    request: Request<ExecuteRequest>,
) -> Result<Response<ExecuteResponse>, Status> {
    let begun = accept(context, request, None)?;
    Ok(Response::new(begun.answer(context).await?))
}

/// Like [`execute`], with progress updates before the answer.
pub(super) fn streaming(
    context: &HostContext,
    request: Request<ExecuteRequest>,
) -> Result<Response<BoxStream<'static, Result<ExecuteUpdate, Status>>>, Status> {
    let (follower, heard) = broadcast::channel(PROGRESS_ROOM);
    let begun = accept(
        context,
        request,
        Some(ArcById::<dyn ProgressObserver>::new(Arc::new(ProgressForwarder(follower)))),
    )?;
    let context = context.clone();
    // The call runs on a separate task, so that a slow reader delays neither its queueing nor its deadline.
    // Dropping the stream ends the call.
    let call = tokio::spawn(async move { begun.answer(&context).await });
    let state = Some((heard, AbortOnDropHandle::new(call)));
    let updates = futures_util::stream::unfold(state, |state| async move {
        let (mut heard, mut call) = state?;
        tokio::select! {
            // Progress that was reported before the answer is sent before it.
            biased;
            Some(progress) = next(&mut heard) => {
                let kind = Some(execute_update::Kind::Progress(progress));
                Some((Ok(ExecuteUpdate { kind }), Some((heard, call))))
            }
            answer = &mut call => {
                let done = answer.unwrap_or_else(|_| Err(Status::internal("internal error")));
                let kind = |answer| ExecuteUpdate { kind: Some(execute_update::Kind::Done(answer)) };
                Some((done.map(kind), None))
            }
        }
    });
    Ok(Response::new(updates.boxed()))
}

/// The next progress update; `None` once all senders are gone. Updates that a slow reader missed are skipped.
async fn next(heard: &mut broadcast::Receiver<Progress>) -> Option<Progress> {
    loop {
        match heard.recv().await {
            Ok(progress) => return Some(progress),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Forwards a call's progress to the stream.
struct ProgressForwarder(broadcast::Sender<Progress>);

impl ProgressObserver for ProgressForwarder {
    fn progress(&self, progress: f64, total: Option<f64>, message: &Sanitized) {
        // An error only means that the client has gone away.
        let _ = self.0.send(Progress { progress, total, message: wire(message) });
    }
}

/// A call that passed all checks and is recorded in the audit log.
struct AcceptedCall {
    /// The id that the caller uses.
    requested_id: String,
    call: Call,
    recording: CallRecording,
}

fn accept(
    context: &HostContext,
    request: Request<ExecuteRequest>,
    follower: Option<ArcById<dyn ProgressObserver>>,
) -> Result<AcceptedCall, Status> {
    let permitted = require(&request, Role::Call)?;
    let trace = trace(&request);
    let request = request.into_inner();
    let granted = authorization::grant_for(&permitted.peer, &request, || context.dispatcher.config())?;
    let CallId { requested: asked, unique } = call_id(request.call_id)?;
    let origin = if request.for_model { Origin::Model } else { permitted.origin };
    let mut call = Call::new(unique, request.plugin, request.action, origin);
    call.args = request.args;
    call.granted = granted;
    call.progress_observer = follower;
    call.trace = trace;
    call.context = request.context;
    call.scope = scope(permitted.peer.uid, &call.context);
    call.timeout = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
    tracing::debug!(
        call_id = &*call.id,
        plugin = truncate(&call.plugin),
        session = call.session().map(truncate),
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        origin = origin.as_str(),
        "a peer calls"
    );

    let audit = &context.info.audit;
    let plugin = if audit.is_on() { context.registry.get(&call.plugin) } else { None };
    let digest = plugin.and_then(|plugin| plugin.digest()).unwrap_or_default();
    let recording = audit.call(&permitted.peer, session(&call.context), &call, digest);
    Ok(AcceptedCall { requested_id: asked, call, recording })
}

impl AcceptedCall {
    /// Executes the call. If the caller goes away, this future is dropped, which cancels the call down to the
    /// plugin.
    async fn answer(self, context: &HostContext) -> Result<ExecuteResponse, Status> {
        let Self { requested_id: asked, call, recording } = self;
        let accepted = call.accepted;
        let Ok(guarded) = context.dispatcher.call(call).await else {
            recording.discard();
            return Err(draining());
        };
        recording.finish(&guarded).await;
        Ok(response(asked, guarded, accepted.elapsed()))
    }
}

/// The trace that the request's metadata refers to, if any.
fn trace(request: &Request<ExecuteRequest>) -> Option<ArcById<dyn TraceContext>> {
    let trace = CallTrace::from_headers(request.metadata().as_ref())?;
    Some(ArcById::<dyn TraceContext>::new(Arc::new(TraceAdapter(trace))))
}

/// Adapts a call's trace to the guard's trait.
struct TraceAdapter(CallTrace);

impl TraceContext for TraceAdapter {
    fn begin(&self, call: &Span) {
        self.0.set_parent(call);
    }

    fn outgoing_metadata(&self, request: &Span) -> Vec<(&'static str, String)> {
        self.0.outgoing_headers(request)
    }
}

/// A prefix of a text from the caller, short enough for a log line.
fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SESSION_CHARS)]
}

/// Identifies the conversation of a call: the kernel states the uid, and the client states which of that
/// user's sessions. So a client cannot name another user's session.
fn scope(uid: u32, context: &BTreeMap<String, String>) -> Arc<str> {
    format!("{uid}:{}", session(context)).into()
}

/// The session id, cut to its maximum length.
fn session(context: &BTreeMap<String, String>) -> &str {
    let whole = context.get(SESSION_KEY).map_or("", String::as_str);
    let end = whole.char_indices().nth(MAX_SESSION_CHARS).map_or(whole.len(), |(at, _)| at);
    &whole[..end]
}

/// The response for a guarded answer; `talon exec` prints the same.
#[must_use]
pub fn response(call_id: String, guarded: Guarded, took: Duration) -> ExecuteResponse {
    let Parts { block, outcome, content, error, structured_content, report, .. } = guarded.into_parts();
    let kind = match outcome {
        Outcome::Ok => host::Outcome::Ok,
        Outcome::ToolError => host::Outcome::ToolError,
        Outcome::Refused { .. } => host::Outcome::Refused,
        Outcome::HostFault { .. } => host::Outcome::HostFault,
    };
    ExecuteResponse {
        call_id,
        outcome: kind.into(),
        block: block.into_string(),
        content: content.into_string(),
        error: error.into_string(),
        structured_content: structured_content.into_string(),
        reason: outcome.reason().to_owned(),
        retryable: outcome.is_retryable(),
        report: Some(report_on_wire(report)),
        duration_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    }
}

/// The guard's report as a protocol message.
#[must_use]
pub fn report_on_wire(report: Report) -> GuardReport {
    let kinds = report.kinds.iter().map(|((family, kind), count)| (format!("{family}/{kind}"), *count));
    GuardReport {
        bytes_in: report.bytes_in as u64,
        bytes_out: report.bytes_out as u64,
        bytes_left_out: report.bytes_left_out as u64,
        kinds: kinds.collect(),
        flags: report.flags.iter().map(|flag| (*flag).to_owned()).collect(),
        truncated: report.truncated(),
        structured_as_text: report.structured_as_text,
        digest: report.digest.map(|digest| digest.to_string()).unwrap_or_default(),
        handle: report.page.unwrap_or_default(),
        tainted_by: report.tainted_by,
        neutralised: report
            .neutralised
            .into_iter()
            .map(|(family, count)| (family.to_owned(), count))
            .collect(),
    }
}
