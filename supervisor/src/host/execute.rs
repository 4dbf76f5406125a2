//! `Execute`: one guarded call.

use std::time::Duration;

use talon_guard::{Call, Guarded, Outcome, Parts};
use talon_proto::host::{self, ExecuteRequest, ExecuteResponse, GuardReport};
use tonic::{Request, Response, Status};

use super::call_id::call_id;
use super::peer::require;
use super::service::HostService;
use crate::config::Role;

pub(super) async fn execute(
    service: &HostService,
    request: Request<ExecuteRequest>,
) -> Result<Response<ExecuteResponse>, Status> {
    let permitted = require(&request, Role::Call)?;
    let request = request.into_inner();
    let id = call_id(request.call_id)?;
    let mut call = Call::new(id.clone(), request.plugin, request.action, permitted.origin);
    call.args = request.args.into_iter().collect();
    call.context = request.context.into_iter().collect();
    call.timeout = (request.timeout_ms > 0).then(|| Duration::from_millis(request.timeout_ms));
    tracing::debug!(
        call_id = id,
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        origin = permitted.origin.word(),
        "a peer calls"
    );

    // A caller that goes away drops this future, and with it the call down to the plugin's wire.
    let accepted = call.accepted;
    let guarded = service.door.call(call).await.map_err(|_| super::draining())?;
    Ok(Response::new(response(id, guarded, accepted.elapsed())))
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
        block,
        content,
        error,
        structured_content,
        reason: outcome.reason().to_owned(),
        retryable: outcome.is_retryable(),
        report: Some(GuardReport {
            bytes_in: report.bytes_in as u64,
            bytes_out: report.bytes_out as u64,
            bytes_left_out: report.bytes_left_out as u64,
            neutralised: report
                .neutralised
                .into_iter()
                .map(|(family, count)| (family.to_owned(), count))
                .collect(),
        }),
        duration_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    }
}
