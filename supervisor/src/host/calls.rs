//! `ListCalls` and `GetCall`: the latest calls, and one of them with what the guard did.

use prost::Message as _;
use talon_proto::host::{
    GetCallRequest, GetCallResponse, ListCallsRequest, ListCallsResponse, RecentCall, TextSpan,
};
use talon_proto::plugin::ToolResultResponse;
use talon_sanitize::{FamilyCounts, Raw};
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::dispatch::{LoggedCall, layers};
use crate::peer::require;
use crate::to_wire::{micros, status_text, unix_ms, wire};

/// Calls of one answer, unless the request says otherwise, and at most.
const DEFAULT_CALLS: u32 = 100;
const MAX_CALLS: u32 = 500;
/// The most of an answer that is shown, in bytes: 256 KiB, more than a person reads.
const MAX_CONTENT_BYTES: usize = 256 << 10;
/// The most places that are marked in it.
const MAX_SPANS: usize = 1000;

pub(super) fn list(
    context: &HostContext,
    request: &Request<ListCallsRequest>,
) -> Result<Response<ListCallsResponse>, Status> {
    require(request, Role::Operate)?;
    let ListCallsRequest { limit, plugin } = request.get_ref();
    let limit = if *limit == 0 { DEFAULT_CALLS } else { (*limit).min(MAX_CALLS) };
    let plugin = Some(plugin.as_str()).filter(|plugin| !plugin.is_empty());
    let calls = context.dispatcher.calls().latest(limit as usize, plugin);
    Ok(Response::new(ListCallsResponse { calls: calls.iter().map(|call| describe(call)).collect() }))
}

pub(super) fn get(
    context: &HostContext,
    request: &Request<GetCallRequest>,
) -> Result<Response<GetCallResponse>, Status> {
    let permitted = require(request, Role::Admin)?;
    let Some(call) = context.dispatcher.calls().get(&request.get_ref().id) else {
        return Err(Status::not_found(status_text(format!(
            "there is no such call among the latest {}: look for it in the audit log (`talon audit show`)",
            crate::dispatch::KEPT_CALLS
        ))));
    };
    let mut answer =
        GetCallResponse { call: Some(describe(&call)), layers: layers(&call), ..GetCallResponse::default() };
    if let Some(raw) = context.dispatcher.raw_answers().get(&call.id) {
        tracing::info!(
            call_id = &*call.id,
            plugin = raw.plugin,
            peer.uid = permitted.peer.uid,
            peer.pid = permitted.peer.pid,
            "an administrator reads a call's arguments and answer"
        );
        // What is no answer has no content.
        let content =
            ToolResultResponse::decode(raw.message).map(|answer| answer.content).unwrap_or_default();
        let sanitizer = context.dispatcher.sanitizer();
        let sanitized = sanitizer.text(&content, &mut FamilyCounts::default());
        let end = if sanitized.len() > MAX_CONTENT_BYTES {
            sanitizer.safe_cut(&sanitized, MAX_CONTENT_BYTES)
        } else {
            sanitized.len()
        };
        answer.kept = true;
        answer.arguments_json = call.arguments().unwrap_or_default();
        answer.spans = edits(&content, &sanitized[..end]);
        answer.content = sanitized[..end].to_owned();
        answer.left_out_bytes = (sanitized.len() - end) as u64;
    }
    Ok(Response::new(answer))
}

fn describe(call: &LoggedCall) -> RecentCall {
    let end = call.end();
    RecentCall {
        id: call.id.to_string(),
        plugin: wire(Raw::from(&call.plugin).line()),
        action: wire(Raw::from(&call.action).line()),
        origin: call.origin.to_owned(),
        subject: wire(Raw::from(&call.subject).line()),
        session: wire(Raw::from(&call.session).line()),
        trace_id: call.trace_id.clone(),
        outcome: end.map_or("running", |end| end.outcome).to_owned(),
        reason: end.map_or("", |end| end.reason).to_owned(),
        unix_ms: unix_ms(call.at),
        duration_us: micros(call.duration()),
        neutralised: end.map_or(0, |end| end.neutralised),
        role: call.role.to_owned(),
    }
}

/// How far two texts are compared to find where they meet again, in characters: longer than any note or mark of the sanitizer.
const MAX_EDIT_CHARS: usize = 64;
/// How many equal characters say that they have met.
const EQUAL_CHARS: usize = 3;

/// The places where the sanitizer changed a text, in its output. Its edits are small: marks and notes that it puts in, and characters that
/// it takes out.
fn edits(original: &str, sanitized: &str) -> Vec<TextSpan> {
    let original: Vec<char> = original.chars().take(2 * MAX_CONTENT_BYTES).collect();
    let output: Vec<(usize, char)> = sanitized.char_indices().collect();
    let place = |at: usize| {
        let bytes = output.get(at).map_or(sanitized.len(), |(bytes, _)| *bytes);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    };
    let meet = |at: usize, of: usize| {
        (0..EQUAL_CHARS).all(|step| match (output.get(at + step), original.get(of + step)) {
            (Some((_, shown)), Some(known)) => shown == known,
            // The output may be cut.
            (None, _) => true,
            (Some(_), None) => false,
        })
    };
    let mut spans = Vec::new();
    let (mut at, mut of) = (0, 0);
    while at < output.len() && spans.len() < MAX_SPANS {
        if original.get(of) == Some(&output[at].1) {
            (at, of) = (at + 1, of + 1);
            continue;
        }
        let edits = (1..=2 * MAX_EDIT_CHARS)
            .flat_map(|size| (0..=size.min(MAX_EDIT_CHARS)).map(move |out| (size - out, out)));
        let edit =
            edits.filter(|(into, _)| *into <= MAX_EDIT_CHARS).find(|(into, out)| meet(at + into, of + out));
        let Some((into, out)) = edit else {
            spans.push(TextSpan { start: place(at), end: place(output.len()) });
            break;
        };
        if into > 0 {
            spans.push(TextSpan { start: place(at), end: place(at + into) });
        }
        (at, of) = (at + into, of + out);
    }
    spans
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
