//! `Execute`: one guarded call.

use std::collections::BTreeMap;
use std::time::Duration;

use talon_guard::{Call, Guarded, Outcome, Parts, Report};
use talon_proto::host::{self, ExecuteRequest, ExecuteResponse, GuardReport};
use tonic::{Request, Response, Status};

use super::call_id::{CallId, call_id};
use super::peer::require;
use super::service::HostService;
use crate::config::Role;

/// The value of the session context that tells one conversation of a caller from another.
const SESSION_KEY: &str = "session_id";

/// How much of it counts: identifiers are far shorter, and it is the key of a table.
const MAX_SESSION_CHARS: usize = 128;

pub(super) async fn execute(
    service: &HostService,
    request: Request<ExecuteRequest>,
) -> Result<Response<ExecuteResponse>, Status> {
    let permitted = require(&request, Role::Call)?;
    let request = request.into_inner();
    let CallId { asked, unique } = call_id(request.call_id)?;
    let mut call = Call::new(unique, request.plugin, request.action, permitted.origin);
    call.args = request.args.into_iter().collect();
    call.context = request.context.into_iter().collect();
    call.scope = scope(permitted.peer.uid, &call.context);
    call.timeout = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
    tracing::debug!(
        call_id = call.id,
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        origin = permitted.origin.word(),
        "a peer calls"
    );

    // A caller that goes away drops this future, and with it the call down to the plugin's wire.
    let accepted = call.accepted;
    let guarded = service.door.call(call).await.map_err(|_| super::draining())?;
    Ok(Response::new(response(asked, guarded, accepted.elapsed())))
}

/// Whose conversation a call belongs to: the kernel says who calls, and that one which of its sessions. Nobody can name
/// another's.
fn scope(uid: u32, context: &BTreeMap<String, String>) -> String {
    let session: String =
        context.get(SESSION_KEY).into_iter().flat_map(|id| id.chars().take(MAX_SESSION_CHARS)).collect();
    format!("{uid}:{session}")
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
