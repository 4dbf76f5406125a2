//! The parts of a request that say in which trace and conversation a call belongs.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_guard::{ArcById, Call, SESSION_KEY, TraceContext};
use talon_proto::host::ExecuteRequest;
use talon_telemetry::CallTrace;
use tonic::Request;
use tracing::Span;

use crate::peer::{Peer, Principal};

/// Maximum length of a session id. Real ones are far shorter. It is the key of a table, so it has to be
/// bounded.
const MAX_SESSION_CHARS: usize = 128;

/// The trace that the request's metadata refers to, if any.
pub(super) fn trace(request: &Request<ExecuteRequest>) -> Option<ArcById<dyn TraceContext>> {
    let trace = CallTrace::from_headers(request.metadata().as_ref())?;
    Some(ArcById::<dyn TraceContext>::new(Arc::new(TraceAdapter(trace))))
}

/// The id of that trace, for who looks at calls; empty if there is none.
pub(super) fn trace_id(request: &Request<ExecuteRequest>) -> String {
    const DIGITS: usize = 32;
    let header =
        request.metadata().get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let id = header.split('-').nth(1).unwrap_or_default();
    let is_id = id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { id.to_owned() } else { String::new() }
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
pub(super) fn scope(principal: &Principal, context: &BTreeMap<String, String>) -> Arc<str> {
    format!("{principal}:{}", session(context)).into()
}

/// The session id, cut to its maximum length.
pub(super) fn session(context: &BTreeMap<String, String>) -> &str {
    let whole = context.get(SESSION_KEY).map_or("", String::as_str);
    let end = whole.char_indices().nth(MAX_SESSION_CHARS).map_or(whole.len(), |(at, _)| at);
    &whole[..end]
}

/// Logs that a peer calls.
pub(super) fn log(peer: &Peer, call: &Call) {
    tracing::debug!(
        call_id = &*call.id,
        plugin = truncate(&call.plugin),
        session = call.session().map(truncate),
        peer.uid = peer.uid,
        peer.pid = peer.pid,
        origin = call.origin.as_str(),
        "a peer calls"
    );
}
