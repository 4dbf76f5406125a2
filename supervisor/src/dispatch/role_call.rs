//! Calls for extensions: the action plays a role.
//!
//! Only a service of the supervisor's own may make them, and only those that the running configuration lists: role, entry and
//! action have to be one of its entries. Of a job, the action may also propose it: the agent calls those that the operator
//! accepted (decision 38). The entry stands in place of session and sender, so such a call belongs to no
//! conversation: neither its pages nor its fingerprints are shared with one, and no list of `agent.allow` concerns it.

use std::sync::Arc;

use talon_extensions::Role;
use talon_guard::{ArcById, Grant};
use talon_proto::host::ExecuteRequest;
use tonic::Status;

use crate::config::{Config, Role as PeerRole};
use crate::peer::{OwnService, Peer};

/// How much of a wrong name an error message repeats.
const MAX_SHOWN_CHARS: usize = 80;

/// A call for an extension.
pub(super) struct RoleCall {
    pub(super) role: Role,
    /// What stands in place of the session: `request_hook/pii.scan`.
    pub(super) label: String,
    /// Whether its action has to declare the role, since the entry does not say with which arguments it is called.
    pub(super) needs_declaration: bool,
    /// Whether its action has to propose the job, since the configuration has none of its id.
    pub(super) needs_proposal: bool,
    grant: Option<ArcById<dyn Grant>>,
}

impl RoleCall {
    /// What the call may use: everything, since its action was compared with the entry, or nothing.
    pub(super) fn grant(&self) -> Option<ArcById<dyn Grant>> {
        self.grant.clone()
    }

    /// Refuses the call, since no entry lists it and its action proposes no such job.
    pub(super) fn refuse_unlisted(&mut self) {
        self.grant.get_or_insert_with(|| ArcById::<dyn Grant>::new(Arc::new(NotListed)));
    }

    /// Refuses the call, since its action does not declare the role: its entry is failing.
    pub(super) fn refuse_undeclared(&mut self) {
        self.grant.get_or_insert_with(|| ArcById::<dyn Grant>::new(Arc::new(NotDeclared)));
    }
}

/// The role that the action of a request plays; `None` for an ordinary call. A pair of role and action that the configuration
/// does not list is a call that is not granted, so that it is recorded and counted as any refused call.
///
/// # Errors
/// `PermissionDenied` for a peer that is no service of ours, and for an ordinary call of the action that keeps the plugins' state by
/// one that may not see that state; `InvalidArgument` for a request that contradicts itself.
pub(super) fn role_call(
    peer: &Peer,
    request: &ExecuteRequest,
    config: impl FnOnce() -> Arc<Config>,
) -> Result<Option<RoleCall>, Status> {
    let is_state = peer.service == Some(OwnService::State);
    if request.role.is_empty() && request.extension.is_empty() && !is_state {
        check_keeps_no_state(peer, request, config)?;
        return Ok(None);
    }
    if !peer.is_agent() && !peer.is_gateway() && !is_state {
        return Err(Status::permission_denied(
            "a role is for calls of the supervisor's own services: call the action without it, or try an entry with \
             `talon extension test`",
        ));
    }
    let role: Role = request.role.parse().map_err(|error| Status::invalid_argument(format!("{error}")))?;
    // The state service calls the storage backend and nothing else; nobody else calls that one.
    if is_state != (role == Role::StorageBackend) {
        return Err(Status::permission_denied(format!("the role {role} is for calls of {}", role.caller())));
    }
    // The agent calls those of the gateway, too: an operator tries entries through it. The gateway calls its own alone.
    if peer.is_gateway() && role.caller() != "talon-gateway" {
        return Err(Status::permission_denied(format!("the role {role} is for calls of {}", role.caller())));
    }
    if !request.context.is_empty() || request.for_model || !request.within.is_empty() {
        return Err(Status::invalid_argument(
            "a call with a role belongs to no conversation: leave out context, for_model and within",
        ));
    }
    let config = config();
    let shown: String = request.extension.chars().take(MAX_SHOWN_CHARS).collect();
    let backend = config.state.storage_backend().filter(|entry| is_state && entry.name == request.extension);
    let entry = backend.or_else(|| config.extensions.entry(role, &request.extension));
    let is_free = entry.is_none() && role == Role::ScheduledTask;
    let (label, needs_declaration, grant) = match entry {
        Some(entry) if entry.target() == (request.plugin.as_str(), request.action.as_str()) => {
            // The scheduler asks whether its action declares the role, and calls it either way.
            let needs_declaration = entry.args.is_none() && role != Role::ScheduledTask;
            (entry.key().to_string(), needs_declaration, None)
        }
        None if is_free => (format!("{role}/{shown}"), false, None),
        _ => (format!("{role}/{shown}"), false, Some(ArcById::<dyn Grant>::new(Arc::new(NotListed)))),
    };
    Ok(Some(RoleCall { role, label, needs_declaration, needs_proposal: is_free, grant }))
}

/// Refuses an ordinary call of the action that keeps the plugins' state: such a call knows neither quotas nor whose key is whose.
/// Who may read and change that state with `talon state` may make it, as backups in that action need.
fn check_keeps_no_state(
    peer: &Peer,
    request: &ExecuteRequest,
    config: impl FnOnce() -> Arc<Config>,
) -> Result<(), Status> {
    if peer.rights.is_some_and(|(role, _)| role >= PeerRole::Admin) {
        return Ok(());
    }
    let config = config();
    let called = (request.plugin.as_str(), request.action.as_str());
    if config.state.storage_backend().is_some_and(|entry| entry.target() == called) {
        return Err(Status::permission_denied(
            "this action keeps the plugins' state: call it with the role admin, or use `talon state`",
        ));
    }
    Ok(())
}

/// The grant of a call that the configuration does not list.
struct NotListed;

impl Grant for NotListed {
    fn covers(&self, _plugin: &str, _action: &str) -> bool {
        false
    }

    fn covers_any_action(&self, _plugin: &str) -> bool {
        false
    }

    fn remedy(&self, _plugin: &str, _action: &str) -> &'static str {
        "no entry of `extensions` in the running configuration gives it this role: add one, and reload"
    }
}

/// The grant of a call whose action does not declare its role (any more).
struct NotDeclared;

impl Grant for NotDeclared {
    fn covers(&self, _plugin: &str, _action: &str) -> bool {
        false
    }

    fn covers_any_action(&self, _plugin: &str) -> bool {
        false
    }

    fn remedy(&self, _plugin: &str, _action: &str) -> &'static str {
        "the plugin does not declare this role for it: see `talon extension list`, and name another action or give the entry `args`"
    }
}

#[cfg(test)]
#[path = "role_call_tests.rs"]
mod tests;
