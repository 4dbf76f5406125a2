//! Pages of what a server lists, each small enough for the structured content of one answer.
//!
//! A server's page may be larger than that. So a cursor of ours says how many items of which page of the server's
//! were listed, and that page is asked for again.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams,
};
use serde_json::{Map, Value};
use talon_proto::mcp_actions;
use talon_sdk::{Context, IntoOutput, Output, Tool, ToolError};

use super::{action, item};
use crate::request;
use crate::server_handle::ServerHandle;

/// The most bytes of a page, as JSON: the guard keeps structured content of 64 KiB whole by default
/// (`guard.max_structured_bytes`), and marks in it make it longer.
const MAX_PAGE_BYTES: usize = 32 << 10;
/// The longest cursor of a server that is passed on, in bytes: it comes back as an argument.
const MAX_CURSOR_BYTES: usize = 4096;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Resources,
    Templates,
    Prompts,
}

impl List {
    fn action(self) -> (&'static str, &'static str) {
        match self {
            Self::Resources => (mcp_actions::RESOURCES_LIST, "Lists the MCP server's resources."),
            Self::Templates => {
                (mcp_actions::RESOURCES_TEMPLATES, "Lists the MCP server's resource templates.")
            }
            Self::Prompts => (mcp_actions::PROMPTS_LIST, "Lists the MCP server's prompts."),
        }
    }

    /// The field of the items, as MCP names it.
    fn key(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
        }
    }

    fn item(self, item: &Value) -> Option<Value> {
        match self {
            Self::Resources => item::resource(item, "uri"),
            Self::Templates => item::resource(item, "uriTemplate"),
            Self::Prompts => item::prompt(item),
        }
    }
}

/// The action that lists.
pub(super) fn action(list: List, server: ServerHandle) -> Tool {
    let (name, description) = list.action();
    let cursor = action::text("cursor", "The nextCursor of the page before.", false);
    let declared = action::declaration(name, description, vec![cursor]);
    Tool::dynamic(declared, move |args: BTreeMap<String, String>, cx: Context| {
        let server = server.clone();
        async move {
            let place = Position::parse(action::argument(&args, &cx, "cursor").as_deref())?;
            let result = request::answer(&server, list.request(place.cursor.clone()), &cx).await?;
            page(list, &place, &result)
        }
    })
}

/// How far a list was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    /// The server's cursor; nothing: its first page.
    cursor: Option<String>,
    /// How many items of that page were listed.
    listed: usize,
}

impl Position {
    fn parse(cursor: Option<&str>) -> Result<Self, ToolError> {
        let Some(cursor) = cursor else { return Ok(Self { cursor: None, listed: 0 }) };
        let parts = cursor.split_once(':').and_then(|(listed, rest)| Some((listed.parse().ok()?, rest)));
        match parts {
            Some((listed, rest)) => Ok(Self { cursor: (!rest.is_empty()).then(|| rest.to_owned()), listed }),
            None => Err(ToolError::new("this cursor is none of this list: list from the beginning")),
        }
    }

    fn to_cursor(&self) -> String {
        format!("{}:{}", self.listed, self.cursor.as_deref().unwrap_or_default())
    }
}

/// The page at a place of a server's answer.
fn page(list: List, place: &Position, result: &Value) -> Result<Output, ToolError> {
    let Some(items) = result.get(list.key()).and_then(Value::as_array) else {
        return Err(ToolError::new(format!("the MCP server's answer holds no list of {}", list.key())));
    };
    let (mut kept, mut bytes, mut left_out) = (Vec::new(), 0, 0_usize);
    let mut next = None;
    for (index, item) in items.iter().enumerate().skip(place.listed) {
        let Some(item) = list.item(item) else {
            left_out += 1;
            continue;
        };
        bytes += item.to_string().len();
        if bytes > MAX_PAGE_BYTES && !kept.is_empty() {
            next = Some(Position { listed: index, ..place.clone() });
            break;
        }
        kept.push(item);
    }
    if next.is_none() {
        let theirs = result.get("nextCursor").and_then(Value::as_str);
        let theirs = theirs.filter(|cursor| !cursor.is_empty() && Some(*cursor) != place.cursor.as_deref());
        match theirs {
            Some(cursor) if cursor.len() <= MAX_CURSOR_BYTES => {
                next = Some(Position { cursor: Some(cursor.to_owned()), listed: 0 });
            }
            Some(cursor) => tracing::warn!(
                "the rest of the MCP server's {} is not listed: its cursor has {} bytes, more than {MAX_CURSOR_BYTES}",
                list.key(),
                cursor.len()
            ),
            None => {}
        }
    }
    if left_out > 0 {
        tracing::warn!(
            "{left_out} of the MCP server's {} are not listed: they have no name, or one that is too long",
            list.key()
        );
    }
    let mut listed = Map::new();
    listed.insert(list.key().to_owned(), kept.into());
    if let Some(next) = next {
        listed.insert("nextCursor".to_owned(), next.to_cursor().into());
    }
    if left_out > 0 {
        listed.insert("leftOut".to_owned(), left_out.into());
    }
    Value::Object(listed).into_output()
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
