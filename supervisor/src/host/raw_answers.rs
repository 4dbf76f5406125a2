//! `ListRawAnswers` and `GetRawAnswer`: answers before the guard processed them. For administrators only,
//! because they contain what the guard keeps away from models.

use talon_guard::RawMessage;
use talon_proto::host::{
    GetRawAnswerRequest, GetRawAnswerResponse, ListRawAnswersRequest, ListRawAnswersResponse, RawAnswer,
};
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::dispatch::requested_id;
use crate::peer::require;
use crate::to_wire::{status_text, unix_ms};

pub(super) fn list(
    context: &HostContext,
    request: &Request<ListRawAnswersRequest>,
) -> Result<Response<ListRawAnswersResponse>, Status> {
    require(request, Role::Admin)?;
    let answers = context.dispatcher.raw_answers().list().iter().map(describe).collect();
    Ok(Response::new(ListRawAnswersResponse { answers, kept_bytes: context.dispatcher.raw_bytes() }))
}

pub(super) fn get(
    context: &HostContext,
    request: &Request<GetRawAnswerRequest>,
) -> Result<Response<GetRawAnswerResponse>, Status> {
    let permitted = require(request, Role::Admin)?;
    let call_id = &request.get_ref().call_id;
    let Some(kept) = find(context, call_id) else {
        let why = match context.dispatcher.raw_bytes() {
            0 => "none are kept: set guard.keep_raw_bytes".to_owned(),
            bytes => format!(
                "it never came, or made room for later ones: guard.keep_raw_bytes is {bytes}, and `talon guard raw` \
                 lists what is kept"
            ),
        };
        return Err(Status::not_found(status_text(format!("there is no answer to that call: {why}"))));
    };
    tracing::info!(
        call_id = kept.call_id,
        plugin = kept.plugin,
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        "an administrator reads an answer as it came"
    );
    Ok(Response::new(GetRawAnswerResponse { about: Some(describe(&kept)), message: kept.message.into() }))
}

/// Finds by internal id, or else the newest one with this caller's id.
fn find(context: &HostContext, call_id: &str) -> Option<RawMessage> {
    let kept = context.dispatcher.raw_answers();
    kept.get(call_id)
        .or_else(|| kept.list().into_iter().find(|message| requested_id(&message.call_id) == call_id))
}

fn describe(kept: &RawMessage) -> RawAnswer {
    RawAnswer {
        call_id: kept.call_id.clone(),
        plugin: kept.plugin.clone(),
        action: kept.action.clone(),
        unix_ms: unix_ms(kept.received),
        digest: kept.digest.to_string(),
        bytes: kept.message.len() as u64,
    }
}
