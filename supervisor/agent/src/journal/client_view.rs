//! A session's messages as clients are shown them.

use talon_llm::model::{Arguments, ToolCall};
use talon_proto::agent;
use talon_store::{Message, Role};

use super::record::EntryMetadata;
use crate::tool_result::CallOutcome;

/// The messages for people, in order; the journal's bookkeeping is left out. A result's call is known only if
/// the answer with the call is among the messages.
#[must_use]
pub fn client_messages(messages: &[Message]) -> Vec<agent::Message> {
    let mut calls: Vec<ToolCall> = Vec::new();
    messages.iter().filter_map(|message| client_message(message, &mut calls)).collect()
}

fn client_message(message: &Message, calls: &mut Vec<ToolCall>) -> Option<agent::Message> {
    let mut shown = agent::Message {
        sequence: message.sequence,
        role: role(message.role).to_owned(),
        content: message.content.clone(),
        unix_ms: u64::try_from(message.at.as_millis()).unwrap_or_default(),
        summary: message.summarizes.is_some(),
        ..agent::Message::default()
    };
    match EntryMetadata::of(message) {
        None
        | Some(EntryMetadata::Asked { .. } | EntryMetadata::Noted { .. } | EntryMetadata::Summary { .. }) => {
        }
        Some(EntryMetadata::Began { .. } | EntryMetadata::Brought { .. }) => return None,
        // The answer with the call was already shown.
        Some(EntryMetadata::Ended { .. }) if message.content.is_empty() => return None,
        Some(EntryMetadata::Ended { .. }) => {}
        Some(EntryMetadata::Answered { calls: made, .. }) => {
            shown.tool_calls = made.iter().map(call).collect();
            *calls = made;
        }
        Some(EntryMetadata::Executed { place, ran, .. }) => {
            let of = calls.get(place);
            shown.tool_results.push(agent::ToolResult {
                call_id: of.map(|call| call.id.clone()).unwrap_or_default(),
                tool: of.map(|call| call.name.clone()).unwrap_or_default(),
                success: ran == CallOutcome::Succeeded,
                output: std::mem::take(&mut shown.content),
                ..agent::ToolResult::default()
            });
        }
    }
    Some(shown)
}

fn call(call: &ToolCall) -> agent::ToolCall {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => serde_json::to_string(arguments).unwrap_or_default(),
        Arguments::Unreadable(text) => text.clone(),
    };
    agent::ToolCall {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        arguments,
        ..agent::ToolCall::default()
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
