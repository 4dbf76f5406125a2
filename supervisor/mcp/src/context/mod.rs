//! Resources and prompts of plugins for MCP clients (docs/decisions/0022).
//!
//! A plugin offers them by the actions of [`talon_proto::mcp_actions`]. So each list, each resource and each
//! prompt is a call through the guard, like that of a tool.

mod address;
mod completion;
mod list;
mod prompt;
mod provider;
mod request;
mod resource;
mod subscribe;

pub(crate) use address::prefix_link;
pub(crate) use completion::complete;
pub(crate) use list::{list_prompts, list_resources, list_templates};
pub(crate) use prompt::get_prompt;
pub(crate) use provider::{Provider, Providers};
pub(crate) use request::Requester;
pub(crate) use resource::read_resource;
pub(crate) use subscribe::{ResourcePlace, SubscribeAnswer, subscribe};
