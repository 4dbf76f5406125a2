//! The scripts' functions as actions in roles.
//!
//! Every script has an action for each of the three roles of hooks, whether it defines the function or not: then the message passes.
//! So a script that gets another function needs no other configuration, and one that cannot be loaded fails its hooks instead of being
//! absent.

mod hook;
mod notification;
mod status;
mod task;

use std::sync::Arc;

use talon_lua_engine::{CallError, Point};
use talon_sdk::{Tool, ToolError, tracing};

use crate::scripts::Loaded;
use crate::service::Service;

/// All actions.
pub(crate) fn tools(service: &Arc<Service>) -> Vec<Tool> {
    let mut tools = vec![status::tool(service)];
    for (name, entry) in service.scripts().all() {
        tools.extend(hook::tools(service, &name));
        let Some(loaded) = entry.loaded else { continue };
        if loaded.definition.points.contains(&Point::OnEvent) {
            tools.push(notification::tool(service, &name));
        }
        if loaded.definition.points.contains(&Point::Task) {
            tools.push(task::tool(service, &name, loaded.definition.schedule.as_ref()));
        }
    }
    tools
}

/// A script that can be called.
fn loaded(service: &Service, name: &str) -> Result<Arc<Loaded>, ToolError> {
    match service.scripts().get(name) {
        None => Err(ToolError::new(format!(
            "there is no script {name}.lua any more: put it back, or `talon reload`"
        ))),
        Some(entry) => entry.loaded.ok_or_else(|| {
            let failure = entry.failure.unwrap_or_default();
            ToolError::new(format!("the script {name}.lua is not loaded: {failure}"))
        }),
    }
}

/// A failure of a script, for whoever called it, and for the log.
fn failed(name: &str, error: &CallError) -> ToolError {
    tracing::warn!(script = name, kind = error.kind.as_str(), "failed: {error}");
    ToolError::new(format!("the script {name}.lua failed: {error}"))
}
