//! Tools of an MCP server as actions of a plugin.

mod arguments;
pub(crate) mod call;
mod inline;
pub(crate) mod list;
pub(crate) mod offer;
mod properties;
pub(crate) mod run;
mod schema;
