//! The scripts' functions as actions in roles.
//!
//! Every script has an action for each of the three roles of hooks, whether it defines the function or not: then the message passes.
//! So a script that gets another function needs no other configuration, and one that cannot be loaded fails its hooks instead of being
//! absent.

mod hook;
mod notification;
mod script;
mod status;
mod task;

use std::sync::Arc;

use talon_lua_engine::Point;
use talon_sdk::Tool;

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
