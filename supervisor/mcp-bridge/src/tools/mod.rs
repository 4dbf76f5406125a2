//! Tools of an MCP server as actions of a plugin.

mod arguments;
pub(crate) mod call;
mod inline;
pub(crate) mod list;
pub(crate) mod offer;
mod results;
mod schema;

use rmcp::model::{CustomResult, ServerResult};
use rmcp::service::ServiceError;
use serde_json::Value;

/// A result as JSON, whichever type the library decoded it to.
fn result_value(result: ServerResult) -> Result<Value, ServiceError> {
    match result {
        ServerResult::CustomResult(CustomResult(value)) => Ok(value),
        other => serde_json::to_value(other).map_err(|_| ServiceError::UnexpectedResponse),
    }
}
