//! The response object.

use serde_json::{Map, Value, json};
use talon_proto::agent::{ClientCall, Done, Usage};

use super::ids::StoredId;
use crate::random;

/// What all states of one response share.
#[derive(Debug, Clone)]
pub(super) struct ResponseFrame {
    pub(super) id: String,
    pub(super) stored: Option<StoredId>,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) echo: Map<String, Value>,
}

impl ResponseFrame {
    /// Of a turn that is stored, or of one that is not.
    pub(super) fn new(
        stored: Option<StoredId>,
        created: u64,
        model: String,
        echo: Map<String, Value>,
    ) -> Self {
        let id = stored.as_ref().map_or_else(|| random::id("resp"), StoredId::response);
        Self { id, stored, created, model, echo }
    }

    pub(super) fn message_id(&self) -> String {
        self.stored.as_ref().map_or_else(|| random::id("msg"), StoredId::message)
    }

    pub(super) fn call_id(&self, place: usize) -> String {
        self.stored.as_ref().map_or_else(|| random::id("fc"), |stored| stored.call(place))
    }

    /// The response in a state, with its output so far.
    pub(super) fn with(&self, status: &str, output: &[Value], end: Option<&Done>) -> Value {
        let mut response = json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "model": self.model,
            "output": output,
            "service_tier": "default",
            "store": self.stored.is_some(),
            "truncation": "disabled",
            "usage": end.map(|done| usage(done.usage.as_ref())),
            "user": null,
        });
        for (name, value) in &self.echo {
            response[name] = value.clone();
        }
        if status == "incomplete" {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        response
    }

    /// The response of an answer.
    pub(super) fn whole(&self, done: &Done) -> Value {
        let mut output = Vec::new();
        if !done.text.is_empty() {
            output.push(message(&self.message_id(), "completed", Some(&done.text)));
        }
        let calls = done.client_calls.iter().enumerate();
        output
            .extend(calls.map(|(place, call)| {
                function_call(&self.call_id(place), "completed", call, &call.arguments)
            }));
        self.with(status(done), &output, Some(done))
    }
}

/// The state of a response that has ended with an answer.
pub(super) fn status(done: &Done) -> &'static str {
    if done.finish == "length" { "incomplete" } else { "completed" }
}

/// A message of the assistant; without a text it has no part yet.
pub(super) fn message(id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(part).into_iter().collect();
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

/// A text of a message.
pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// A call that the client makes.
pub(super) fn function_call(id: &str, status: &str, call: &ClientCall, arguments: &str) -> Value {
    json!({"id": id, "type": "function_call", "status": status, "call_id": call.id, "name": call.name, "arguments": arguments})
}

fn usage(usage: Option<&Usage>) -> Value {
    let usage = usage.copied().unwrap_or_default();
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}
