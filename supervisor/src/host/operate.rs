//! `Start`, `Stop`, `Restart`, `RefreshCapabilities`, `Approve` and `LiftQuarantine`: operations on plugins. Each is answered
//! when the plugin has reached the state, or with the reason why it has not.
//!
//! An operation is carried out even if the client goes away meanwhile.

use std::future::Future;
use std::sync::Arc;

use talon_plugin::{OperateError, Plugin};
use talon_proto::host::{
    self, ApproveRequest, ApproveResponse, LiftQuarantineRequest, LiftQuarantineResponse,
    RefreshCapabilitiesRequest, RefreshCapabilitiesResponse, RestartRequest, RestartResponse, StartRequest,
    StartResponse, StopRequest, StopResponse,
};
use talon_sanitize::Raw;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::peer::require;
use crate::to_wire::{draining, status_text};

pub(super) async fn start(
    context: &HostContext,
    request: Request<StartRequest>,
) -> Result<Response<StartResponse>, Status> {
    let plugin = authorize(context, &request, "start", &request.get_ref().name)?;
    context.renew(&plugin, |plugin| async move { plugin.start().await }).await?;
    Ok(Response::new(StartResponse { plugin: Some(context.view(&plugin)) }))
}

pub(super) async fn stop(
    context: &HostContext,
    request: Request<StopRequest>,
) -> Result<Response<StopResponse>, Status> {
    let plugin = authorize(context, &request, "stop", &request.get_ref().name)?;
    context.carry_out(&plugin, |plugin| async move { plugin.stop().await }).await?;
    Ok(Response::new(StopResponse { plugin: Some(context.view(&plugin)) }))
}

pub(super) async fn restart(
    context: &HostContext,
    request: Request<RestartRequest>,
) -> Result<Response<RestartResponse>, Status> {
    let plugin = authorize(context, &request, "restart", &request.get_ref().name)?;
    context.renew(&plugin, |plugin| async move { plugin.restart().await }).await?;
    Ok(Response::new(RestartResponse { plugin: Some(context.view(&plugin)) }))
}

pub(super) async fn refresh(
    context: &HostContext,
    request: Request<RefreshCapabilitiesRequest>,
) -> Result<Response<RefreshCapabilitiesResponse>, Status> {
    let plugin = authorize(context, &request, "refresh", &request.get_ref().name)?;
    let refreshed =
        context.carry_out(&plugin, |plugin| async move { plugin.refresh_capabilities().await }).await?;
    let plugin: host::Plugin = context.view(&plugin);
    Ok(Response::new(RefreshCapabilitiesResponse { plugin: Some(plugin), refreshed }))
}

pub(super) async fn approve(
    context: &HostContext,
    request: Request<ApproveRequest>,
) -> Result<Response<ApproveResponse>, Status> {
    let plugin = authorize(context, &request, "approve", &request.get_ref().name)?;
    let ApproveRequest { actions, digests, .. } = request.into_inner();
    let approve = |plugin: Plugin| async move { plugin.approve(actions, digests).await };
    let approved = context.carry_out(&plugin, approve).await?;
    tracing::info!(plugin = %plugin.name(), actions = approved.join(","), "approved");
    Ok(Response::new(ApproveResponse { plugin: Some(context.view(&plugin)), approved }))
}

/// Earlier answers no longer count; the plugin's processes stay.
pub(super) fn lift_quarantine(
    context: &HostContext,
    request: &Request<LiftQuarantineRequest>,
) -> Result<Response<LiftQuarantineResponse>, Status> {
    let plugin = authorize(context, request, "lift_quarantine", &request.get_ref().name)?;
    let lifted = context.dispatcher.lift_quarantine(&plugin);
    Ok(Response::new(LiftQuarantineResponse { plugin: Some(context.view(&plugin)), lifted }))
}

/// Checks the role and records the operation.
pub(super) fn authorize<T>(
    context: &HostContext,
    request: &Request<T>,
    verb: &'static str,
    name: &str,
) -> Result<Plugin, Status> {
    let permitted = require(request, Role::Operate)?;
    let plugin = context.plugin(name)?;
    tracing::info!(
        plugin = %plugin.name(),
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        "an operator says {verb}"
    );
    Ok(plugin)
}

impl HostContext {
    /// Runs an operation that gives a plugin a new process, and admits calls to it at once. Refused while the
    /// supervisor is about to end.
    async fn renew<F>(
        &self,
        plugin: &Plugin,
        operation: impl FnOnce(Plugin) -> F + Send + 'static,
    ) -> Result<(), Status>
    where
        F: Future<Output = Result<(), OperateError>> + Send + 'static,
    {
        if self.dispatcher.is_draining() {
            return Err(draining());
        }
        let door = Arc::clone(&self.dispatcher);
        let renewed = |plugin: Plugin| async move {
            operation(plugin.clone()).await?;
            door.reset_faults(&plugin);
            Ok(())
        };
        self.carry_out(plugin, renewed).await
    }

    async fn carry_out<T, F>(&self, plugin: &Plugin, operation: impl FnOnce(Plugin) -> F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, OperateError>> + Send + 'static,
    {
        let task = tokio::spawn(operation(plugin.clone()));
        match task.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                let text = status_text(Raw::of(&error));
                Err(match error {
                    OperateError::Removed { .. } => Status::not_found(text),
                    _ => Status::failed_precondition(text),
                })
            }
            Err(panic) => {
                tracing::error!(%panic, plugin = %plugin.name(), "an operation ended in a panic: a defect of talon");
                Err(Status::internal("internal error"))
            }
        }
    }
}
