//! `GetConfig`, `PatchConfig` and `ListConfigChanges`: the configuration, for administrators.

use talon_config_json::{bounded_json, message};
use talon_proto::host::{
    ConfigEdit, ConfigEntry, ConfigProblem, GetConfigRequest, GetConfigResponse, ListConfigChangesRequest,
    ListConfigChangesResponse, PatchConfigRequest, PatchConfigResponse,
};
use talon_sanitize::Raw;
use tonic::{Code, Request, Response, Status};

use super::context::HostContext;
use crate::config::overlay::{Edit, OverlayKeys};
use crate::config::{ConfigRow, KeyPath, Role};
use crate::peer::require;
use crate::reload::{OverlayPatch, PatchError, PatchOutcome, PatchProblem};
use crate::to_wire::{draining, status_text, wire};

/// The most changes of one request: more keys than the overlay usually holds.
const MAX_EDITS: usize = 200;
/// The most steps of a key, and the longest step, in bytes. Our own keys need eight steps.
const MAX_STEPS: usize = 16;
const MAX_STEP_BYTES: usize = 128;
/// The deepest value.
const MAX_DEPTH: usize = 16;
/// How many keys the audit log names; the others are counted.
const NAMED_KEYS: usize = 5;

pub(super) fn get(
    context: &HostContext,
    request: &Request<GetConfigRequest>,
) -> Result<Response<GetConfigResponse>, Status> {
    require(request, Role::Admin)?;
    let reloader = &context.info.reloader;
    let loaded = reloader.loaded();
    let running = reloader.config();
    let later = running.differences(&loaded.config);
    // Values in force, with the places where they are written.
    let in_force = loaded.in_force(running.as_ref().clone());
    let entry = |ConfigRow { key, value, layer, source, fixed }: ConfigRow| ConfigEntry {
        value: Some(message(&value)),
        layer: layer.as_str().to_owned(),
        source: wire(Raw::from(&source).line()),
        editable: fixed.is_none(),
        why: match fixed {
            Some(why) => wire(Raw::from(&why).line()),
            None if later.contains(&key) => {
                "another value is written, and holds after the next start of talon".to_owned()
            }
            None => String::new(),
        },
        key: key.steps().to_vec(),
    };
    let path = |path: Option<&std::path::PathBuf>| {
        path.map(|path| wire(Raw::of(path.display()).line())).unwrap_or_default()
    };
    Ok(Response::new(GetConfigResponse {
        entries: in_force.rows().into_iter().map(entry).collect(),
        revision: reloader.revision(),
        file: path(loaded.file.as_ref()),
        overlay: path(loaded.overlay.as_ref()),
        overlay_keys: OverlayKeys::new(&running.gateway.config_keys).names(),
    }))
}

pub(super) async fn changes(
    context: &HostContext,
    request: Request<ListConfigChangesRequest>,
) -> Result<Response<ListConfigChangesResponse>, Status> {
    require(&request, Role::Admin)?;
    let mut changes = context.info.reloader.config_changes().await;
    if request.get_ref().limit > 0 {
        changes.truncate(request.get_ref().limit as usize);
    }
    Ok(Response::new(ListConfigChangesResponse { changes }))
}

/// What the audit log says of a change.
pub(super) fn subject(request: &PatchConfigRequest) -> String {
    let named = request.edits.iter().take(NAMED_KEYS);
    let mut keys: Vec<String> = named.map(|edit| key_of(edit).to_string()).collect();
    if let Some(more) = request.edits.len().checked_sub(NAMED_KEYS).filter(|more| *more > 0) {
        keys.push(format!("{more} more"));
    }
    format!("{}{}", if request.dry_run { "dry run: " } else { "" }, keys.join(", "))
}

/// What became of a change, for the audit log: one that is refused is an answer, and changed nothing.
pub(super) fn verdict(result: &Result<Response<PatchConfigResponse>, Status>) -> Result<(), Status> {
    let answer = result.as_ref().map_err(Status::clone)?.get_ref();
    let first = answer.problems.first().map(|problem| format!("{} {}", problem.key, problem.message));
    if answer.accepted { Ok(()) } else { Err(Status::failed_precondition(first.unwrap_or_default())) }
}

pub(super) async fn patch(
    context: &HostContext,
    request: Request<PatchConfigRequest>,
) -> Result<Response<PatchConfigResponse>, Status> {
    let permitted = require(&request, Role::Admin)?;
    if context.dispatcher.is_draining() {
        return Err(draining());
    }
    let by = match &permitted.peer.delegation {
        Some(delegation) => delegation.subject.to_string(),
        None => format!("uid:{}", permitted.peer.uid),
    };
    let PatchConfigRequest { edits, dry_run, revision } = request.into_inner();
    if edits.len() > MAX_EDITS {
        return Err(Status::invalid_argument(format!(
            "there are more than {MAX_EDITS} changes: send them in parts"
        )));
    }
    let edits = edits.into_iter().map(edit).collect::<Result<Vec<_>, _>>()?;
    tracing::info!(peer.uid = permitted.peer.uid, by, dry_run, "an administrator changes the configuration");
    let revision = Some(revision).filter(|revision| !revision.is_empty());
    let reloader = &context.info.reloader;
    let patched = reloader.patch(OverlayPatch { edits, dry_run, revision, by }).await.map_err(status)?;
    let PatchOutcome { accepted, problems, warnings, changed, needs_restart, number } = patched;
    let lines = |texts: Vec<String>| texts.iter().map(|text| wire(Raw::from(text).line())).collect();
    let problem = |PatchProblem { key, message }| ConfigProblem {
        key: wire(Raw::from(&key).line()),
        message: wire(Raw::from(&message).line()),
    };
    Ok(Response::new(PatchConfigResponse {
        accepted,
        problems: problems.into_iter().map(problem).collect(),
        warnings: lines(warnings),
        changed: lines(changed),
        needs_restart: lines(needs_restart),
        revision: reloader.revision(),
        number,
    }))
}

fn status(error: PatchError) -> Status {
    let code = match error {
        PatchError::OtherRevision(_) => Code::Aborted,
        PatchError::NoOverlay | PatchError::Storage(_) | PatchError::Unreadable(_) => {
            Code::FailedPrecondition
        }
    };
    Status::new(code, status_text(error.to_string()))
}

fn key_of(edit: &ConfigEdit) -> KeyPath {
    KeyPath::of(&edit.key.iter().map(String::as_str).collect::<Vec<_>>())
}

fn edit(edit: ConfigEdit) -> Result<Edit, Status> {
    let key = key_of(&edit);
    if key.steps().is_empty() || key.steps().len() > MAX_STEPS {
        return Err(Status::invalid_argument(format!("a key has from 1 to {MAX_STEPS} steps")));
    }
    if key.steps().iter().any(|step| step.is_empty() || step.len() > MAX_STEP_BYTES) {
        return Err(Status::invalid_argument(format!(
            "a step of a key has from 1 to {MAX_STEP_BYTES} bytes"
        )));
    }
    let value = match edit.value {
        Some(value) => Some(bounded_json(value, MAX_DEPTH).ok_or_else(|| {
            let text =
                format!("{key}: a value is set, at most {MAX_DEPTH} levels deep, and its numbers are finite");
            Status::invalid_argument(status_text(text))
        })?),
        None => None,
    };
    Ok(Edit { key, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_log_names_some_keys_and_counts_the_others() {
        let edit = |key: &str| ConfigEdit { key: vec!["agent".to_owned(), key.to_owned()], value: None };
        let mut request =
            PatchConfigRequest { edits: vec![edit("a"), edit("b")], dry_run: true, ..Default::default() };
        assert_eq!(subject(&request), "dry run: agent.a, agent.b");
        request.edits = (0..8).map(|number| edit(&number.to_string())).collect();
        request.dry_run = false;
        assert!(subject(&request).ends_with("agent.4, 3 more"));
    }
}
