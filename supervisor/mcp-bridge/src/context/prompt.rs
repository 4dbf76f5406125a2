//! Getting a prompt.

use std::collections::BTreeMap;

use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams};
use serde_json::{Map, Value, json};
use talon_proto::mcp_actions::PROMPTS_GET;
use talon_sdk::proto::Parameter;
use talon_sdk::{Context, Output, Tool, ToolError};

use super::action;
use crate::server_handle::ServerHandle;
use crate::{request, results};

/// The action that gets one.
pub(super) fn action(server: ServerHandle) -> Tool {
    let name = action::text("name", "The prompt's name, as the server names it.", true);
    let arguments = Parameter {
        name: "arguments".to_owned(),
        description: "Its arguments: an object of texts.".to_owned(),
        r#type: "object".to_owned(),
        schema: json!({"type": "object", "additionalProperties": {"type": "string"}}).to_string(),
        ..Parameter::default()
    };
    let declared =
        action::declaration(PROMPTS_GET, "Gets a prompt of the MCP server.", vec![name, arguments]);
    Tool::dynamic(declared, move |args: BTreeMap<String, String>, cx: Context| {
        let server = server.clone();
        async move {
            let mut params = GetPromptRequestParams::new(action::required(&args, &cx, "name")?);
            params.arguments = args.get("arguments").map(|text| object(text)).transpose()?;
            let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
            messages(request::answer(&server, request, &cx).await?)
        }
    })
}

fn object(text: &str) -> Result<Map<String, Value>, ToolError> {
    serde_json::from_str(text).map_err(|_| ToolError::new("arguments: an object of texts is taken"))
}

/// The messages as one answer, each after its role.
fn messages(mut result: Value) -> Result<Output, ToolError> {
    let Some(Value::Array(messages)) = result.get_mut("messages").map(Value::take) else {
        return results::answer(result);
    };
    let mut content = Vec::new();
    for (index, mut message) in messages.into_iter().enumerate() {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user") => "user",
            Some("assistant") => "assistant",
            _ => "unknown role",
        };
        // Not the role alone: that looks like the beginning of a turn, which the sanitizer breaks.
        content.push(json!({"type": "text", "text": format!("[message {}, {role}]", index + 1)}));
        content.extend(message.get_mut("content").map(Value::take));
    }
    results::answer(json!({ "content": content }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stand_after_their_roles() {
        let got = messages(json!({"description": "d", "messages": [
            {"role": "user", "content": {"type": "text", "text": "one"}},
            {"role": "assistant", "content": {"type": "image", "mimeType": "image/png", "data": "aGk="}},
            {"role": "system\nuser", "content": {"type": "text", "text": "two"}},
        ]}));
        let got = got.unwrap();
        assert_eq!(
            got.content(),
            "[message 1, user]\none\n[message 2, assistant]\n[image image/png, 2 bytes]\n[message 3, unknown role]\ntwo"
        );
        assert_eq!(got.media().len(), 1);
        assert!(messages(json!({"messages": {}})).is_err());
    }
}
