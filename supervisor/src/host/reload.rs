//! `ReloadPlugin` and `Reload`: changes at runtime without losing calls.

use talon_plugin::{DownPolicy, ReplaceError, ReplaceOutcome};
use talon_proto::host::{
    PluginChange, ReloadPluginRequest, ReloadPluginResponse, ReloadRequest, ReloadResponse,
};
use talon_sanitize::Raw;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::Role;
use crate::peer::require;
use crate::reload::{PluginOutcome, ReloadOutcome, ReplaceFailure};
use crate::to_wire::{count, draining, status_text, wire};

pub(super) async fn plugin(
    context: &HostContext,
    request: Request<ReloadPluginRequest>,
) -> Result<Response<ReloadPluginResponse>, Status> {
    let plugin = super::operate::authorize(context, &request, "reload", &request.get_ref().name)?;
    if context.dispatcher.is_draining() {
        return Err(draining());
    }
    // The replacement is carried out even if the client goes away meanwhile.
    let (reloader, name, door) =
        (context.info.reloader.clone(), plugin.name().clone(), context.dispatcher.clone());
    let replacing = tokio::spawn(async move {
        let replaced = reloader.replace(&name, DownPolicy::Start).await?;
        // An operator has checked the plugin, so earlier faults no longer count.
        door.reset_faults(&replaced.plugin);
        Ok(replaced)
    });
    let replaced = match replacing.await {
        Ok(Ok(replaced)) => replaced,
        Ok(Err(failure)) => return Err(status_of(&failure)),
        Err(panic) => {
            tracing::error!(%panic, plugin = %plugin.name(), "a replacement ended in a panic: a defect of talon");
            return Err(Status::internal("internal error"));
        }
    };
    let outcome = match replaced.outcome {
        ReplaceOutcome::Replaced => "replaced",
        ReplaceOutcome::Started => "started",
        ReplaceOutcome::Down => "down",
    };
    Ok(Response::new(ReloadPluginResponse {
        plugin: Some(context.view(&replaced.plugin)),
        outcome: outcome.to_owned(),
        old_digest: replaced.old_digest.unwrap_or_default(),
        new_digest: replaced.new_digest.unwrap_or_default(),
        duration_ms: u64::try_from(replaced.took.as_millis()).unwrap_or(u64::MAX),
    }))
}

fn status_of(failure: &ReplaceFailure) -> Status {
    let text = status_text(Raw::of(failure));
    match failure {
        ReplaceFailure::Gone { .. } | ReplaceFailure::Replace(ReplaceError::Unknown { .. }) => {
            Status::not_found(text)
        }
        ReplaceFailure::Replace(ReplaceError::ShuttingDown { .. }) => draining(),
        _ => Status::failed_precondition(text),
    }
}

pub(super) async fn configuration(
    context: &HostContext,
    request: Request<ReloadRequest>,
) -> Result<Response<ReloadResponse>, Status> {
    let permitted = require(&request, Role::Admin)?;
    if context.dispatcher.is_draining() {
        return Err(draining());
    }
    let dry_run = request.get_ref().dry_run;
    tracing::info!(
        peer.uid = permitted.peer.uid,
        peer.pid = permitted.peer.pid,
        dry_run,
        "an administrator has the configuration read anew"
    );
    Ok(Response::new(reload_on_wire(context.info.reloader.reload(dry_run).await)))
}

fn reload_on_wire(reloaded: ReloadOutcome) -> ReloadResponse {
    // Keys and problems quote configuration files, which are untrusted text.
    let lines = |texts: Vec<String>| texts.iter().map(|text| wire(Raw::from(text).line())).collect();
    let change = |PluginOutcome { plugin, what, reason }| PluginChange {
        plugin,
        what: String::from(what),
        reason: wire(reason),
    };
    ReloadResponse {
        accepted: reloaded.accepted,
        problems: lines(reloaded.problems),
        warnings: lines(reloaded.warnings),
        changed: lines(reloaded.changed),
        needs_restart: lines(reloaded.needs_restart),
        plugins: reloaded.plugins.into_iter().map(change).collect(),
        left: count(reloaded.left),
        config_file: reloaded
            .config_file
            .map(|path| wire(Raw::of(path.display()).line()))
            .unwrap_or_default(),
    }
}
