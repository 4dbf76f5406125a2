//! `Execute`: one guarded call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use talon_guard::{Call, Follow, Guarded, Handed, Origin, Outcome, Parts, Report, SESSION_KEY, Traced};
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

use super::call_id::{CallId, call_id};
use super::narrow;
use super::peer::require;
use super::service::HostService;
use super::wire;
use crate::audit::CallRecording;
use crate::config::Role;

/// How much of it counts: identifiers are far shorter, and it is the key of a table.
const MAX_SESSION_CHARS: usize = 128;

/// How much of a call's progress waits for a reader who is slow; then the oldest is left out. A second's worth and some.
const PROGRESS_ROOM: usize = 16;

pub(super) async fn execute(
    service: &HostService,
    request: Request<ExecuteRequest>,
) -> Result<Response<ExecuteResponse>, Status> {
    let begun = begin(service, request, None)?;
    Ok(Response::new(begun.answer(service).await?))
}

/// The same, with what is told of the call before it ends.
pub(super) fn streaming(
    service: &HostService,
    request: Request<ExecuteRequest>,
) -> Result<Response<BoxStream<'static, Result<ExecuteUpdate, Status>>>, Status> {
    let (follower, heard) = broadcast::channel(PROGRESS_ROOM);
    let begun = begin(service, request, Some(Handed::<dyn Follow>::new(Arc::new(Told(follower)))))?;
    let service = service.clone();
    // On a task of its own, so that a reader who does not read keeps neither the call's place nor its deadline waiting.
    // Letting go of the stream ends it.
    let call = tokio::spawn(async move { begun.answer(&service).await });
    let state = Some((heard, AbortOnDropHandle::new(call)));
    let updates = futures_util::stream::unfold(state, |state| async move {
        let (mut heard, mut call) = state?;
        tokio::select! {
            // What was told before the answer goes before it.
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

/// What is told next; `None` once nobody is left who could tell. What a slow reader did not take in time is left out.
async fn next(heard: &mut broadcast::Receiver<Progress>) -> Option<Progress> {
    loop {
        match heard.recv().await {
            Ok(progress) => return Some(progress),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Passes on what is told of a call.
struct Told(broadcast::Sender<Progress>);

impl Follow for Told {
    fn progress(&self, progress: f64, total: Option<f64>, message: &Sanitized) {
        // An error only says that nobody listens any more.
        let _ = self.0.send(Progress { progress, total, message: wire(message) });
    }
}

/// A call that may be made, and is recorded from here on.
struct Begun {
    /// The id that its caller knows it by.
    asked: String,
    call: Call,
    recording: CallRecording,
}

fn begin(
    service: &HostService,
    request: Request<ExecuteRequest>,
    follower: Option<Handed<dyn Follow>>,
) -> Result<Begun, Status> {
    let permitted = require(&request, Role::Call)?;
    let trace = trace(&request);
    let request = request.into_inner();
    let granted = narrow::granted(&permitted.peer, &request, || service.door.config())?;
    let CallId { asked, unique } = call_id(request.call_id)?;
    let origin = if request.for_model { Origin::Model } else { permitted.origin };
    let mut call = Call::new(unique, request.plugin, request.action, origin);
    call.args = request.args;
    call.granted = granted;
    call.follower = follower;
    call.trace = trace;
    call.context = request.context;
    call.scope = scope(permitted.peer.uid, &call.context);
    call.timeout = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
    tracing::debug!(
        call_id = &*call.id,
        plugin = cut(&call.plugin),
        session = call.session().map(cut),
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        origin = origin.word(),
        "a peer calls"
    );

    let audit = &service.about.audit;
    let plugin = if audit.is_on() { service.registry.get(&call.plugin) } else { None };
    let digest = plugin.and_then(|plugin| plugin.digest()).unwrap_or_default();
    let recording = audit.call(&permitted.peer, session(&call.context), &call, digest);
    Ok(Begun { asked, call, recording })
}

impl Begun {
    /// Makes the call. A caller that goes away drops this future, and with it the call down to the plugin's wire.
    async fn answer(self, service: &HostService) -> Result<ExecuteResponse, Status> {
        let Self { asked, call, recording } = self;
        let accepted = call.accepted;
        let Ok(guarded) = service.door.call(call).await else {
            recording.not_begun();
            return Err(super::draining());
        };
        recording.ended(&guarded).await;
        Ok(response(asked, guarded, accepted.elapsed()))
    }
}

/// The trace that a call's metadata makes it a part of.
fn trace(request: &Request<ExecuteRequest>) -> Option<Handed<dyn Traced>> {
    let trace = CallTrace::of_headers(request.metadata().as_ref())?;
    Some(Handed::<dyn Traced>::new(Arc::new(Tied(trace))))
}

/// A call's trace as the guard knows it.
struct Tied(CallTrace);

impl Traced for Tied {
    fn begin(&self, call: &Span) {
        self.0.begin(call);
    }

    fn onward(&self, request: &Span) -> Vec<(&'static str, String)> {
        self.0.onward(request)
    }
}

/// As much of a caller's own words as a line of the log has.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SESSION_CHARS)]
}

/// Whose conversation a call belongs to: the kernel says who calls, and that one which of its sessions. Nobody can name
/// another's.
fn scope(uid: u32, context: &BTreeMap<String, String>) -> Arc<str> {
    format!("{uid}:{}", session(context)).into()
}

/// As much of the session's name as counts.
fn session(context: &BTreeMap<String, String>) -> &str {
    let whole = context.get(SESSION_KEY).map_or("", String::as_str);
    let end = whole.char_indices().nth(MAX_SESSION_CHARS).map_or(whole.len(), |(at, _)| at);
    &whole[..end]
}

/// A guarded answer as it goes over the wire; `talon exec` prints the same.
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

/// What a guard did, as it goes over the wire.
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
