//! A session's messages as clients are shown them.

use talon_llm::model::{Arguments, Image, ToolCall};
use talon_proto::agent;
use talon_store::{Message, Role};

use super::TurnOptions;
use super::record::EntryMetadata;
use crate::media::Attachment;
use crate::tool_result::CallOutcome;

/// The messages for people, in order; the journal's bookkeeping is left out. A result's call is known only if
/// the answer with the call is among the messages.
#[must_use]
pub fn client_messages(messages: &[Message]) -> Vec<agent::Message> {
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut withheld = None;
    let messages: Vec<&Message> = messages.iter().filter(|message| !is_fact(message)).collect();
    let followed = messages.iter().copied().map(Some).skip(1).chain([None]);
    let shown = messages.iter().zip(followed);
    shown.filter_map(|(message, next)| client_message(message, next, &mut calls, &mut withheld)).collect()
}

/// Whether a message is no part of a conversation.
pub(super) fn is_fact(message: &Message) -> bool {
    matches!(EntryMetadata::of(message), Some(EntryMetadata::Happened { .. }))
}

fn client_message(
    message: &Message,
    next: Option<&Message>,
    calls: &mut Vec<ToolCall>,
    withheld: &mut Option<String>,
) -> Option<agent::Message> {
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
        | Some(EntryMetadata::Noted { .. } | EntryMetadata::Undone { .. } | EntryMetadata::Summary { .. }) => {
        }
        Some(EntryMetadata::Received { turn, message, with }) => {
            // Once its hooks have seen it, it is there a second time.
            let asked = next.and_then(EntryMetadata::of);
            if matches!(asked, Some(EntryMetadata::Asked { turn: seen, .. }) if seen == turn) {
                return None;
            }
            show_request(&mut shown, *with);
            shown.content = message;
        }
        Some(EntryMetadata::Asked { with, .. }) => {
            // People see what they wrote.
            if let Some(original) = with.hooks.as_ref().and_then(|hooks| hooks.original.clone()) {
                let asked = std::mem::replace(&mut shown.content, original);
                shown.hooked = Some(asked).filter(|asked| *asked != shown.content);
            }
            show_request(&mut shown, *with);
        }
        Some(EntryMetadata::Hooked { .. }) if message.content.is_empty() => return None,
        Some(EntryMetadata::Hooked { .. }) => {
            shown.hooked = withheld.take().filter(|said| *said != shown.content);
        }
        Some(
            EntryMetadata::Began { .. }
            | EntryMetadata::Parked { .. }
            | EntryMetadata::Brought { .. }
            | EntryMetadata::Happened { .. },
        ) => return None,
        // The answer with the call was already shown.
        // Beside the partial answer that it left, which people are shown with it.
        Some(EntryMetadata::Ended { partial, .. }) if !partial.is_empty() => {
            shown.content = format!("{} The answer so far:\n{partial}", shown.content);
        }
        Some(EntryMetadata::Ended { .. }) if message.content.is_empty() => return None,
        Some(EntryMetadata::Ended { .. }) => {}
        // What people get of it follows, once its hooks have seen it.
        Some(EntryMetadata::Answered { calls: made, withheld: Some(said), .. }) if made.is_empty() => {
            *withheld = Some(said);
            return None;
        }
        Some(EntryMetadata::Answered { calls: made, .. }) => {
            shown.tool_calls = made.iter().map(wire_call).collect();
            *calls = made;
        }
        Some(EntryMetadata::Executed { place, ran, provenance, .. }) => {
            let of = calls.get(place);
            shown.media = provenance.images.images.iter().map(media).collect();
            shown.tool_results.push(agent::ToolResult {
                call_id: of.map(|call| call.id.clone()).unwrap_or_default(),
                tool: of.map(|call| call.name.clone()).unwrap_or_default(),
                success: ran == CallOutcome::Succeeded,
                output: std::mem::take(&mut shown.content),
                // Hex that the journal did not write is no receipt.
                receipt: hex::decode(&provenance.receipt).unwrap_or_default(),
                arguments: provenance.arguments,
                duration_ms: provenance.duration_ms,
                truncated: provenance.truncated,
                ..agent::ToolResult::default()
            });
        }
    }
    Some(shown)
}

fn show_request(shown: &mut agent::Message, with: TurnOptions) {
    shown.media = media_of(&with);
    (shown.channel, shown.sender_name, shown.client_id) = (with.channel, with.sender_name, with.client_id);
    shown.metadata = with.metadata;
}

pub(super) fn media_of(with: &TurnOptions) -> Vec<agent::MediaInfo> {
    with.images.iter().map(media).chain(with.attachments.iter().map(attachment)).collect()
}

pub(super) fn wire_call(call: &ToolCall) -> agent::ToolCall {
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

fn media(image: &Image) -> agent::MediaInfo {
    let Image { digest, kind, bytes, width, height, name } = image;
    agent::MediaInfo {
        media_type: kind.media_type().to_owned(),
        name: name.clone(),
        bytes: u64::try_from(*bytes).unwrap_or(u64::MAX),
        width: *width,
        height: *height,
        digest: digest.clone(),
    }
}

fn attachment(file: &Attachment) -> agent::MediaInfo {
    let Attachment { digest, media_type, bytes, name, .. } = file;
    agent::MediaInfo {
        media_type: media_type.clone(),
        name: name.clone(),
        bytes: u64::try_from(*bytes).unwrap_or(u64::MAX),
        digest: digest.clone(),
        ..agent::MediaInfo::default()
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
