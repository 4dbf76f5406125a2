//! Converts a server's result to a tool's answer.
//!
//! Texts are joined. Other content is described instead of passed on: an image cannot be shown on the way to
//! the model, and its bytes would fill the model's context. A result is decoded field by field from JSON, so
//! that a malformed item costs only that item and not the answer.

use rmcp::model::ErrorData;
use serde_json::Value;
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};
use talon_sdk::{IntoOutput, Output, ToolError};

/// How much of a name, a URI or a type is shown.
const MAX_LABEL_BYTES: usize = 400;
/// The most items of one result that are processed.
const MAX_ITEMS: usize = 10_000;
/// The longest answer that is assembled, in bytes; the SDK refuses a longer one with an error that says so.
const MAX_TEXT_BYTES: usize = talon_sdk::MAX_RESULT_BYTES + 1;

/// The answer of a tool.
pub(crate) fn answer(result: Value) -> Result<Output, ToolError> {
    match result.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => {}
        Some("input_required") => {
            return Err(ToolError::new(
                "the tool asks for input from a person or a model in the middle of its work (MCP elicitation or sampling), \
                 which plugins cannot have here: give all it needs as arguments, or use a tool that does not ask",
            ));
        }
        Some(other) => {
            let other = cut(other, MAX_LABEL_BYTES);
            return Err(ToolError::new(format!(
                "the tool answered with a `{other}` instead of a result, which is not understood here"
            )));
        }
    }
    let text = content(&result);
    let structured = result.get("structuredContent").filter(|value| !value.is_null()).cloned();
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let text = match (text.trim().is_empty(), structured) {
            (true, Some(structured)) => structured.to_string(),
            _ => text,
        };
        return Err(ToolError::new(text));
    }
    match structured {
        Some(structured) if text.is_empty() => structured.into_output(),
        Some(structured) => Output::text(text).structured(structured),
        None if text.is_empty() && result.get("content").is_none() => Err(ToolError::new(format!(
            "the tool's result holds no content: {}",
            cut(&result.to_string(), MAX_LABEL_BYTES)
        ))),
        None => Ok(Output::text(text)),
    }
}

/// A server's error response.
pub(crate) fn refusal(error: &ErrorData) -> ToolError {
    let data = match &error.data {
        Some(data) if !data.is_null() => format!(" ({})", cut(&data.to_string(), MAX_LABEL_BYTES)),
        _ => String::new(),
    };
    let message = cut(&error.message, MAX_ERROR_TEXT_BYTES);
    ToolError::new(format!("the MCP server answers with error {}: {message}{data}", error.code.0))
}

fn content(result: &Value) -> String {
    let items = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut text = String::new();
    for (index, item) in items.iter().enumerate() {
        if index == MAX_ITEMS || text.len() > MAX_TEXT_BYTES {
            text.push_str(&format!("\n[{} further items, not shown]", items.len() - index));
            break;
        }
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&described(item));
    }
    text
}

fn described(item: &Value) -> String {
    let word = |from: &Value, key: &str| {
        from.get(key).and_then(Value::as_str).map(|text| cut(text, MAX_LABEL_BYTES))
    };
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "text" => item.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        "image" | "audio" => {
            let mime = word(item, "mimeType").unwrap_or_else(|| "of an unknown type".to_owned());
            let size = item.get("data").and_then(Value::as_str).map_or(0, decoded_bytes);
            format!("[{kind} {mime}, {size} bytes, not shown]")
        }
        "resource_link" => {
            let mut parts = vec![format!("resource {}", word(item, "uri").unwrap_or_default())];
            parts.extend(word(item, "title").or_else(|| word(item, "name")));
            parts.extend(word(item, "mimeType"));
            parts.extend(item.get("size").and_then(Value::as_u64).map(|size| format!("{size} bytes")));
            parts.extend(word(item, "description"));
            format!("[{}, not read]", parts.join(", "))
        }
        "resource" => {
            let resource = item.get("resource").unwrap_or(&Value::Null);
            let uri = word(resource, "uri").unwrap_or_default();
            let mime = word(resource, "mimeType").map(|mime| format!(", {mime}")).unwrap_or_default();
            match (resource.get("text").and_then(Value::as_str), resource.get("blob").and_then(Value::as_str))
            {
                (Some(text), _) => format!("[resource {uri}{mime}]\n{text}"),
                (None, Some(blob)) => {
                    format!("[resource {uri}{mime}, {} bytes, not shown]", decoded_bytes(blob))
                }
                (None, None) => format!("[resource {uri}{mime}, empty]"),
            }
        }
        _ => format!("[content of the unknown type {:?}, not shown]", cut(kind, MAX_LABEL_BYTES)),
    }
}

/// How many bytes a base64 text encodes.
fn decoded_bytes(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits / 4 * 3
        + match digits % 4 {
            2 => 1,
            3 => 2,
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_joined_and_the_rest_is_described() {
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "audio", "data": ""},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 12},
            {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/plain", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "x:2", "blob": "AAAA"}},
            {"type": "video", "data": "x"},
            7,
        ]});
        assert_eq!(
            answer(result).unwrap().content(),
            "one\n[image image/png, 5 bytes, not shown]\n[audio of an unknown type, 0 bytes, not shown]\n\
             [resource file:///a, a, text/plain, 12 bytes, not read]\n[resource x:1, text/plain]\ninside\n\
             [resource x:2, 3 bytes, not shown]\n[content of the unknown type \"video\", not shown]\n\
             [content of the unknown type \"\", not shown]"
        );
    }

    #[test]
    fn structured_content_is_kept() {
        let both =
            answer(json!({"content": [{"type": "text", "text": "22"}], "structuredContent": {"t": 22}}))
                .unwrap();
        assert_eq!((both.content(), both.structured_content()), ("22", Some(&json!({"t": 22}))));
        let alone = answer(json!({"structuredContent": [1, 2], "resultType": "complete"})).unwrap();
        assert_eq!((alone.content(), alone.structured_content()), ("[1,2]", Some(&json!([1, 2]))));
        assert_eq!(answer(json!({"content": []})).unwrap().content(), "");
    }

    #[test]
    fn what_is_no_result_is_an_error() {
        for (result, says) in [
            (json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]}), "no such file"),
            (json!({"isError": true, "structuredContent": {"code": 5}}), "{\"code\":5}"),
            (json!({"isError": true}), "without giving a reason"),
            (json!({"resultType": "input_required", "inputRequests": {}}), "elicitation"),
            (json!({"resultType": "task", "task": {}}), "`task`"),
            (json!({"other": 1}), "no content"),
            (json!("text"), "no content"),
        ] {
            let said = answer(result).unwrap_err().message().to_owned();
            assert!(said.contains(says), "{said}");
        }
        let refused =
            refusal(&ErrorData::new(rmcp::model::ErrorCode(-32602), "x".repeat(9000), Some(json!([1]))));
        assert!(refused.message().starts_with("the MCP server answers with error -32602: xxx"), "{refused}");
        assert!(refused.message().ends_with("… ([1])") && refused.message().len() < 1200);
    }

    #[test]
    fn sizes_of_base64_are_those_of_what_it_stands_for() {
        for (text, bytes) in [("", 0), ("QQ==", 1), ("QUI=", 2), ("QUJD", 3), ("QUJDRA", 4)] {
            assert_eq!(decoded_bytes(text), bytes, "{text}");
        }
    }
}
