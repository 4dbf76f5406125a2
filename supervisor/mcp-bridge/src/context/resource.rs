//! Reading a resource.

use std::collections::BTreeMap;

use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams};
use serde_json::{Value, json};
use talon_proto::mcp_actions::RESOURCES_READ;
use talon_sdk::{Context, Output, Tool, ToolError};

use super::action;
use crate::server_handle::ServerHandle;
use crate::{request, results};

/// The action that reads one.
pub(super) fn action(server: ServerHandle) -> Tool {
    let uri = action::text("uri", "The resource's address, as the server names it.", true);
    let declared = action::declaration(RESOURCES_READ, "Reads a resource of the MCP server.", vec![uri]);
    Tool::dynamic(declared, move |args: BTreeMap<String, String>, cx: Context| {
        let server = server.clone();
        async move {
            let params = ReadResourceRequestParams::new(action::required(&args, &cx, "uri")?);
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            contents(request::answer(&server, request, &cx).await?)
        }
    })
}

/// The contents as those of a tool that answers with resources.
fn contents(mut result: Value) -> Result<Output, ToolError> {
    let Some(Value::Array(contents)) = result.get_mut("contents").map(Value::take) else {
        return results::answer(result);
    };
    let content: Vec<Value> =
        contents.into_iter().map(|resource| json!({"type": "resource", "resource": resource})).collect();
    results::answer(json!({ "content": content }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_text_and_media() {
        let read = contents(json!({"contents": [
            {"uri": "x:1", "mimeType": "text/plain", "text": "one"},
            {"uri": "x:2", "blob": "AAAA"},
        ]}));
        let read = read.unwrap();
        assert_eq!(read.content(), "[resource x:1, text/plain]\none\n[resource x:2, 3 bytes]");
        let media: Vec<_> = read.media().iter().map(|item| (item.kind.as_str(), item.uri.as_str())).collect();
        assert_eq!(media, [("resource", "x:1"), ("resource", "x:2")]);
        for bad in [json!({}), json!({"contents": 1}), json!({"resultType": "input_required"})] {
            assert!(contents(bad).is_err());
        }
    }
}
