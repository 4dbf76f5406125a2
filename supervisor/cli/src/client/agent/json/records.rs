//! Sessions and their messages.

use serde_json::{Value, json};
use talon_proto::agent::{CompactSessionResponse, Message, Session};

use super::parts::{call, stored_result, with_cost};
use crate::json::fields;

pub(in crate::client::agent) fn session(session: &Session) -> Value {
    with_cost(fields(session))
}

pub(in crate::client::agent) fn message(message: &Message) -> Value {
    let mut value = fields(message);
    value["tool_calls"] = message.tool_calls.iter().map(call).collect();
    value["tool_results"] = message.tool_results.iter().map(stored_result).collect();
    value
}

pub(in crate::client::agent) fn compacted(session_id: &str, response: &CompactSessionResponse) -> Value {
    json!({
        "session_id": session_id,
        "messages": response.messages,
        "tokens_before": response.tokens_before,
        "tokens_after": response.tokens_after,
        "summary": response.summary,
    })
}
