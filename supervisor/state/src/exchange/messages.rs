//! One message of a conversation as YAML.

use serde_json::{Value, json};
use talon_store::limits::{MAX_CONTENT_BYTES, MAX_TOOL_JSON_BYTES};
use talon_store::{Message, Role, Timestamp};

use super::excerpt::excerpt;
use super::fields::text;
use super::node::{Mark, Node, Problem};
use super::omitted::OmittedFields;
use super::scalar;

/// A field of which only the number of values is reported: pictures and the like, which the store does not
/// hold.
pub(super) const FILES: &str = "files";

/// A message as in a file: number and time may be missing.
#[derive(Debug, Default)]
pub(super) struct ParsedMessage {
    pub(super) mark: Mark,
    pub(super) sequence: Option<(Mark, u64)>,
    pub(super) role: Option<Role>,
    pub(super) content: String,
    tool_calls: Option<Value>,
    tool_results: Option<Value>,
    at: Option<Timestamp>,
    summarizes: Option<u64>,
    replaced_by: Option<u64>,
    key: Option<String>,
}

impl ParsedMessage {
    /// The message that stands for messages which no longer exist.
    pub(super) fn summary(content: String, mark: Mark) -> Self {
        Self { role: Some(Role::System), content, mark, ..Self::default() }
    }

    pub(super) fn into_message(self, sequence: u64, otherwise: Timestamp) -> Message {
        let Self { role, content, tool_calls, tool_results, at, summarizes, replaced_by, key, .. } = self;
        Message {
            sequence,
            role: role.unwrap_or(Role::User),
            content,
            tool_calls,
            tool_results,
            at: at.unwrap_or(otherwise),
            summarizes,
            replaced_by,
            key,
        }
    }
}

/// Reads a message. Unknown fields are left out.
pub(super) fn read(node: Node, left_out: &mut OmittedFields) -> Result<ParsedMessage, Problem> {
    let mut message = ParsedMessage { mark: node.at, ..ParsedMessage::default() };
    let mut call = None;
    for (key, value) in node.fields("a message")? {
        let at = value.at;
        let named = |problem: Problem| Problem { reason: format!("{key} {}", problem.reason), ..problem };
        // Also in the spelling of a writer that only lower-cased the field names.
        match key.as_str() {
            // Skipped and counted by the reader; otherwise only a scalar comes here.
            FILES if value.is_empty() => {}
            FILES => left_out.add("files of messages", at),
            _ if value.is_null() => {}
            "sequence" => message.sequence = Some((at, value.number().map_err(named)?)),
            "role" => message.role = Some(role(text("role", value)?)?),
            "content" => message.content = content(value)?,
            "tool_calls" => message.tool_calls = Some(tools("tool_calls", value)?),
            "toolcalls" if value.is_empty() => {}
            "toolcalls" => message.tool_calls = Some(tools("toolcalls", value)?),
            "tool_results" => message.tool_results = Some(tools("tool_results", value)?),
            "tool_call_id" | "toolcallid" => call = Some(text(&key, value)?.0).filter(|id| !id.is_empty()),
            "at" | "timestamp" | "created_at" => {
                let (text, at) = text(&key, value)?;
                message.at =
                    scalar::time(&text).map_err(|error| Problem { at, reason: format!("{key} {error}") })?;
            }
            "summarizes" => message.summarizes = Some(value.number().map_err(named)?),
            "key" => message.key = Some(text("key", value)?.0),
            "replaced_by" => message.replaced_by = Some(value.number().map_err(named)?),
            _ if value.is_empty() => {}
            _ => left_out.add(&format!("{} of messages", excerpt(&key)), at),
        }
    }
    if message.role.is_none() {
        return Err(Problem { at: message.mark, reason: "has no role".into() });
    }
    if message.tool_results.is_none() {
        message.tool_results = call.as_deref().map(tool_result_reference);
    }
    Ok(message)
}

fn content(node: Node) -> Result<String, Problem> {
    let (content, at) = text("content", node)?;
    if content.len() > MAX_CONTENT_BYTES {
        let reason = format!("content must have at most {MAX_CONTENT_BYTES} bytes, not {}", content.len());
        return Err(Problem { at, reason });
    }
    Ok(content)
}

fn tools(key: &str, node: Node) -> Result<Value, Problem> {
    let at = node.at;
    let value = node.json()?;
    let bytes = value.to_string().len();
    if bytes > MAX_TOOL_JSON_BYTES {
        let reason = format!("{key} must have at most {MAX_TOOL_JSON_BYTES} bytes as JSON, not {bytes}");
        return Err(Problem { at, reason });
    }
    Ok(value)
}

fn role((text, at): (String, Mark)) -> Result<Role, Problem> {
    match text.as_str() {
        "system" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        _ => {
            let reason = format!("the role must be system, user, assistant or tool, not {}", excerpt(&text));
            Err(Problem { at, reason })
        }
    }
}

/// The reference of a foreign message to the call that it answers.
fn tool_result_reference(call: &str) -> Value {
    json!({ "tool_call_id": call })
}
