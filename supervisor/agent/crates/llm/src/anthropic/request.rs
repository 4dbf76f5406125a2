//! The question.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::{thinking, tool_search};
use crate::model::{Message, Request, Thinking, Thoughts, ToolChoice, ToolSpec};
use crate::wire::{
    ImagePart, fits, image_parts, number, schema_in_words, sent_arguments, sent_id, sent_name,
};

/// The format's largest temperature.
const MAX_TEMPERATURE: f32 = 1.0;

pub(super) fn body(request: &Request, provider: &str, searches_tools: bool) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("stream".to_owned(), json!(true));
    // A transcript that continues after calls has to contain the thoughts before them. Those of another
    // provider's model are missing, so this question is sent without thinking.
    // Nor does a model think that has to call a tool.
    let is_forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    let level =
        if is_forced || misses_thoughts(request, provider) { Thinking::Off } else { request.thinking };
    let thinks = thinking::ask(&mut body, &request.model, level, request.max_output_tokens);
    if let Some(system) = system(request) {
        body.insert("system".to_owned(), system);
    }
    let deferred = tool_search::deferred(request, searches_tools);
    let known = deferred.map(|_| request.all_tools().map(|tool| tool.name.as_str()).collect());
    let mut messages = messages(request, provider, known.as_ref());
    if request.stable_messages > 0 {
        // The next request of the turn begins with this one.
        messages
            .last_mut()
            .and_then(|message| message["content"].as_array_mut()?.last_mut())
            .map(cache_up_to);
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        let tool = |tool: &ToolSpec| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters });
        let tools = match deferred {
            Some(deferred) => tool_search::tools(request, deferred, tool),
            None => request.tools.iter().map(tool).collect(),
        };
        body.insert("tools".to_owned(), tools);
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({ "type": "none" })),
            ToolChoice::Required => Some(json!({ "type": "any" })),
            ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": name })),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    } else if let Some(tools) = called_tools(request) {
        body.insert("tools".to_owned(), tools);
        body.insert("tool_choice".to_owned(), json!({ "type": "none" }));
    }
    // With thinking, only the default is accepted, or of `top_p` what is near it. From 4.5 on models take one of the
    // two.
    if !thinks && thinking::capabilities(&request.model).temperature {
        let sampling = request.temperature.map(|value| ("temperature", value.min(MAX_TEMPERATURE)));
        if let Some((field, value)) = sampling.or_else(|| request.top_p.map(|value| ("top_p", value))) {
            body.insert(field.to_owned(), number(value));
        }
    }
    // Blanks alone are refused.
    let stops: Vec<_> = request.told_stops().iter().filter(|stop| !stop.trim().is_empty()).collect();
    if !stops.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(stops));
    }
    Value::Object(body)
}

/// Marks a block as the end of a beginning that is cached for five minutes, as the format's
/// [prompt caching](https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching) describes: tools,
/// system and messages before it count. A request may have four.
fn cache_up_to(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// The instructions. They describe the form of an answer: the format's own field accepts fewer schemas than
/// are in use, and not on every model.
fn system(request: &Request) -> Option<Value> {
    let texts = request.messages.iter().enumerate().filter_map(|(place, message)| match message {
        Message::System { text } if !text.is_empty() => Some((place, text.clone())),
        _ => None,
    });
    let form = request.answer_schema.as_ref().map(|schema| (usize::MAX, schema_in_words(schema)));
    let (stable, changing): (Vec<_>, Vec<_>) =
        texts.chain(form).partition(|(place, _)| *place < request.stable_messages);
    let joined = |parts: Vec<(usize, String)>| {
        parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n\n")
    };
    let (stable, changing) = (joined(stable), joined(changing));
    match (stable.is_empty(), changing.is_empty()) {
        (true, true) => None,
        (true, false) => Some(json!(changing)),
        (false, _) => {
            let mut first = json!({ "type": "text", "text": stable });
            cache_up_to(&mut first);
            let rest = (!changing.is_empty()).then(|| json!({ "type": "text", "text": changing }));
            Some(std::iter::once(first).chain(rest).collect())
        }
    }
}

/// The tools of past calls, if no tool is offered now, for instance for a summary: a transcript with calls is
/// rejected without any tools.
fn called_tools(request: &Request) -> Option<Value> {
    let calls = request.messages.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let names: BTreeSet<_> = calls.map(|call| sent_name(&call.name)).collect();
    let tool =
        |name| json!({ "name": name, "description": "Not on offer.", "input_schema": { "type": "object" } });
    (!names.is_empty()).then(|| names.into_iter().map(tool).collect())
}

/// Whether the model thought, and did not only search for tools.
fn has_thoughts(thoughts: &Thoughts) -> bool {
    let is_thought =
        |block: &Value| !matches!(block["type"].as_str(), Some(tool_search::USE | tool_search::RESULT));
    thoughts.data.as_array().is_some_and(|blocks| blocks.iter().any(is_thought))
}

fn misses_thoughts(request: &Request, provider: &str) -> bool {
    let last = request.messages.iter().rev().find_map(|message| match message {
        Message::User { .. } => Some(false),
        Message::Assistant { calls, thoughts, .. } if !calls.is_empty() => {
            let fits =
                |thoughts: &Thoughts| fits(thoughts, provider, &request.model) && has_thoughts(thoughts);
            Some(!thoughts.as_ref().is_some_and(fits))
        }
        _ => None,
    });
    last.unwrap_or(false)
}

/// The transcript. `known`: the tools that are declared, where the request searches them.
fn messages(request: &Request, provider: &str, known: Option<&HashSet<&str>>) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::System { .. } => continue,
            Message::User { text } => ("user", text_block(text).into_iter().collect()),
            Message::Images { introduction, images } => {
                let parts = image_parts(introduction, images, request, |_| true);
                ("user", parts.into_iter().map(image_block).collect())
            }
            Message::Assistant { text, calls, thoughts } => {
                let thoughts = thoughts.as_ref().filter(|thoughts| fits(thoughts, provider, &request.model));
                let mut blocks = tool_search::valid_blocks(thought_blocks(thoughts), known);
                blocks.extend(text_block(text));
                blocks.extend(calls.iter().map(|call| {
                    json!({
                        "type": "tool_use", "id": sent_id(&call.id), "name": sent_name(&call.name),
                        "input": sent_arguments(call),
                    })
                }));
                ("assistant", blocks)
            }
            Message::Tool { call_id, content, is_error } => {
                let block = json!({
                    "type": "tool_result", "tool_use_id": sent_id(call_id), "content": content, "is_error": is_error,
                });
                ("user", vec![block])
            }
        };
        match turns.last_mut() {
            // All results of one answer have to be in one message.
            Some((last, existing)) if *last == role => existing.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// A text block; `None` for an empty text, which is rejected.
fn text_block(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn image_block(part: ImagePart) -> Value {
    match part {
        ImagePart::Text(text) => json!({ "type": "text", "text": text }),
        ImagePart::Image { media_type, base64 } => json!({
            "type": "image", "source": { "type": "base64", "media_type": media_type, "data": base64 },
        }),
    }
}

fn thought_blocks(thoughts: Option<&Thoughts>) -> Vec<Value> {
    thoughts.and_then(|thoughts| thoughts.data.as_array()).cloned().unwrap_or_default()
}
