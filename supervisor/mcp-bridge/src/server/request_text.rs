//! A message as it is sent: the arguments of a tool call stand in it as the caller wrote them.

use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use serde_json::Value;
use talon_arguments::set_member;

/// The arguments of a tool call as they are sent, in the extensions of its request. The library itself holds
/// their numbers as floats.
#[derive(Debug, Clone)]
pub(crate) struct RawArguments(pub(crate) Arc<str>);

/// The message as JSON text.
///
/// # Errors
/// A message that cannot be written, which is a defect.
pub(crate) fn to_json(message: &ClientJsonRpcMessage) -> serde_json::Result<String> {
    let Some(RawArguments(arguments)) = raw_arguments(message) else { return serde_json::to_string(message) };
    let mut value = serde_json::to_value(message)?;
    let params = value.get_mut("params").map(Value::take);
    let mut params = params.filter(Value::is_object).unwrap_or_else(|| Value::Object(Default::default()));
    if let (Some(fields), Some(top)) = (params.as_object_mut(), value.as_object_mut()) {
        fields.shift_remove("arguments");
        top.shift_remove("params");
    }
    let (mut text, mut params) = (value.to_string(), params.to_string());
    set_member(&mut params, "arguments", arguments);
    set_member(&mut text, "params", &params);
    Ok(text)
}

fn raw_arguments(message: &ClientJsonRpcMessage) -> Option<&RawArguments> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    match &request.request {
        ClientRequest::CallToolRequest(call) => call.extensions.get(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, NumberOrString};
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_sent_as_they_were_written() {
        let arguments = json!({"n": 1.0}).as_object().cloned().unwrap();
        let mut call = CallToolRequest::new(CallToolRequestParams::new("t").with_arguments(arguments));
        let message = |call: &CallToolRequest| {
            let request = ClientRequest::CallToolRequest(call.clone());
            to_json(&ClientJsonRpcMessage::request(request, NumberOrString::Number(3))).unwrap()
        };
        let plain: Value = serde_json::from_str(&message(&call)).unwrap();
        assert_eq!(plain["params"]["arguments"], json!({"n": 1.0}));
        call.extensions.insert(RawArguments(r#"{"n":12345678901234567890123}"#.into()));
        let text = message(&call);
        assert!(text.contains(r#""arguments":{"n":12345678901234567890123}"#), "{text}");
        let sent: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&sent["id"], &sent["method"], &sent["params"]["name"]),
            (&json!(3), &json!("tools/call"), &json!("t"))
        );
    }
}
