//! Completing arguments of prompts and of resource templates.

use std::collections::BTreeMap;

use rmcp::model::{ClientRequest, CompleteRequest, CompleteRequestParams};
use serde_json::{Map, Value, json};
use talon_proto::mcp_actions::COMPLETE;
use talon_sdk::proto::Parameter;
use talon_sdk::{Context, IntoOutput, Output, Tool, ToolError};

use super::action;
use crate::request;
use crate::server_handle::ServerHandle;

/// The most values of an answer, as MCP says.
const MAX_VALUES: usize = 100;
/// The longest value, in bytes: what fits in a field. A longer one is left out.
const MAX_VALUE_BYTES: usize = 256;

/// The action that completes.
pub(super) fn action(server: ServerHandle) -> Tool {
    let kind = Parameter {
        schema: json!({ "enum": ["prompt", "resource"] }).to_string(),
        ..action::text("kind", "Of what: prompt or resource.", true)
    };
    let context = Parameter {
        name: "context".to_owned(),
        description: "The other arguments so far: an object of texts.".to_owned(),
        r#type: "object".to_owned(),
        schema: json!({"type": "object", "additionalProperties": {"type": "string"}}).to_string(),
        ..Parameter::default()
    };
    let parameters = vec![
        kind,
        action::text("name", "The prompt's name, or the template of resources.", true),
        action::text("argument", "The argument's name.", true),
        action::text("value", "What is typed of it.", false),
        context,
    ];
    let declared = action::declaration(
        COMPLETE,
        "Completes an argument of a prompt or a resource template.",
        parameters,
    );
    Tool::dynamic(declared, move |args: BTreeMap<String, String>, cx: Context| {
        let server = server.clone();
        async move {
            let request = CompleteRequest::new(params(&args, &cx)?);
            completion(&request::answer(&server, ClientRequest::CompleteRequest(request), &cx).await?)
        }
    })
}

fn params(args: &BTreeMap<String, String>, cx: &Context) -> Result<CompleteRequestParams, ToolError> {
    let name = action::required(args, cx, "name")?;
    let reference = match action::required(args, cx, "kind")?.as_str() {
        "prompt" => json!({ "type": "ref/prompt", "name": name }),
        "resource" => json!({ "type": "ref/resource", "uri": name }),
        _ => return Err(ToolError::new("kind: prompt or resource is taken")),
    };
    let value = action::argument(args, cx, "value").unwrap_or_default();
    let argument = json!({ "name": action::required(args, cx, "argument")?, "value": value });
    let mut params = json!({ "ref": reference, "argument": argument });
    if let Some(context) = args.get("context") {
        let others: Map<String, Value> = serde_json::from_str(context)
            .map_err(|_| ToolError::new("context: an object of texts is taken"))?;
        params["context"] = json!({ "arguments": others });
    }
    serde_json::from_value(params).map_err(|_| ToolError::new("context: an object of texts is taken"))
}

/// The values, within limits.
fn completion(result: &Value) -> Result<Output, ToolError> {
    let found = result.get("completion").and_then(|found| Some((found, found.get("values")?.as_array()?)));
    let Some((found, values)) = found else {
        return Err(ToolError::new("the MCP server's answer holds no completion"));
    };
    let fitting = values.iter().filter_map(Value::as_str).filter(|value| value.len() <= MAX_VALUE_BYTES);
    let kept: Vec<&str> = fitting.take(MAX_VALUES).collect();
    let more = found.get("hasMore").and_then(Value::as_bool).unwrap_or(false) || kept.len() < values.len();
    let mut completion = json!({ "values": kept, "hasMore": more });
    if let Some(total) =
        found.get("total").filter(|total| total.as_u64().is_some_and(|total| u32::try_from(total).is_ok()))
    {
        completion["total"] = total.clone();
    }
    completion.into_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded_in_number_and_length() {
        let of = |completion: Value| completion_of(json!({ "completion": completion }));
        fn completion_of(result: Value) -> Option<Value> {
            completion(&result).ok().and_then(|output| output.structured_content().cloned())
        }
        assert_eq!(
            of(json!({ "values": ["a", "b"] })),
            Some(json!({ "values": ["a", "b"], "hasMore": false }))
        );
        let long = json!({ "values": ["x".repeat(300), "b", 7], "total": 3 });
        assert_eq!(of(long), Some(json!({ "values": ["b"], "hasMore": true, "total": 3 })));
        let many = of(json!({ "values": vec!["v"; 500], "total": -1 })).unwrap();
        assert_eq!((many["values"].as_array().unwrap().len(), &many["hasMore"]), (100, &json!(true)));
        assert!(many.get("total").is_none());
        assert_eq!(of(json!({ "values": "x" })), None);
        assert_eq!(completion_of(json!({})), None);
    }
}
