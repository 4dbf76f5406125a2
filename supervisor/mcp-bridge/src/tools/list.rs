//! Asks a server for its tools, page by page.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use talon_error_chain::error_chain;

use super::offer::MAX_TOOLS;
use crate::request::{ask, result_value};
use crate::server::lines::MAX_MESSAGE_BYTES;

/// The most tools that are read: more than are offered, so that `config.tools` can name any of them. A server
/// with more of them is a mistake.
const MAX_LISTED_TOOLS: usize = 16 * MAX_TOOLS;
/// The most pages: enough for a server that returns one tool on each page, up to one more than the limit on
/// tools that are offered.
const MAX_PAGES: usize = MAX_TOOLS + 1;
/// The longest pagination cursor, in bytes.
const MAX_CURSOR_BYTES: usize = 64 << 10;

/// The largest list, in bytes of JSON, about. Twice one message; an eighth of it is kept.
const MAX_LIST_BYTES: usize = 2 * MAX_MESSAGE_BYTES;

/// Why the tools cannot be listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    #[error("{0}")]
    Transport(String),
    #[error(transparent)]
    Service(ServiceError),
    #[error("its answer to tools/list holds no list of tools")]
    NoList,
    #[error("its list of tools goes round in circles: it names the page that it just gave as the next one")]
    CursorLoop,
    #[error("its list of tools has no end: {MAX_PAGES} pages were read")]
    TooManyPages,
    #[error("its list of tools is larger than {MAX_LIST_BYTES} bytes")]
    Large,
}

impl From<ServiceError> for ListError {
    fn from(error: ServiceError) -> Self {
        match error {
            // Its own text begins with the names of the library's types.
            ServiceError::TransportSend(error) => Self::Transport(error_chain(error.error.as_ref())),
            error => Self::Service(error),
        }
    }
}

/// The tools as they are declared.
pub(crate) async fn tools(peer: &Peer<RoleClient>) -> Result<Vec<Value>, ListError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest::with_param(params);
        let result = result_value(ask(peer, ClientRequest::ListToolsRequest(request)).await?)?;
        let Value::Object(mut result) = result else { return Err(ListError::NoList) };
        let Some(Value::Array(page)) = result.remove("tools") else { return Err(ListError::NoList) };
        bytes += page.iter().map(|tool| tool.to_string().len()).sum::<usize>();
        if bytes > MAX_LIST_BYTES {
            return Err(ListError::Large);
        }
        tools.extend(page);
        let next = match result.remove("nextCursor") {
            Some(Value::String(next)) if !next.is_empty() && next.len() <= MAX_CURSOR_BYTES => next,
            _ => return Ok(tools),
        };
        if tools.len() >= MAX_LISTED_TOOLS {
            tracing::warn!("the MCP server lists more than {MAX_LISTED_TOOLS} tools: the rest is not read");
            tools.truncate(MAX_LISTED_TOOLS);
            return Ok(tools);
        }
        if cursor.as_ref() == Some(&next) {
            return Err(ListError::CursorLoop);
        }
        cursor = Some(next);
    }
    Err(ListError::TooManyPages)
}
