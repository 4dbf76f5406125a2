//! A server's resources and prompts, as actions of its plugin (docs/decisions/0022).

mod action;
mod completion;
mod item;
mod list;
mod prompt;
mod resource;
mod subscribe;

use rmcp::model::ServerCapabilities;
use talon_sdk::Tool;

use crate::server_handle::ServerHandle;
use crate::subscriptions::Subscriptions;
use list::List;

/// The actions for what a server says that it has.
pub(crate) fn actions(
    capabilities: &ServerCapabilities,
    server: &ServerHandle,
    subscriptions: Option<&Subscriptions>,
) -> Vec<Tool> {
    let mut actions = Vec::new();
    if capabilities.resources.is_some() {
        actions.extend([List::Resources, List::Templates].map(|list| list::action(list, server.clone())));
        actions.push(resource::action(server.clone()));
        actions.extend(subscriptions.cloned().map(subscribe::action));
    }
    if capabilities.prompts.is_some() {
        actions.push(list::action(List::Prompts, server.clone()));
        actions.push(prompt::action(server.clone()));
    }
    if capabilities.completions.is_some() {
        actions.push(completion::action(server.clone()));
    }
    actions
}
