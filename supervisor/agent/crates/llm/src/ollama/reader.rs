//! The answer.

use serde_json::Value;

use crate::model::{Finish, Usage};
use crate::remote::{Assembly, Failure, Fragment, Reader, Report, Step, reported};
use crate::wire::{Frame, ThinkTags};

/// Reads one answer. Models whose template is older than `think` leave their thoughts in the text.
#[derive(Default)]
pub(crate) struct OllamaReader {
    tags: ThinkTags,
}

impl Reader for OllamaReader {
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure> {
        // A truncated last line means an incomplete answer, which is reported when the stream has ended.
        let value: Value = match serde_json::from_str(&frame.data) {
            Ok(value) => value,
            Err(error) if error.is_eof() && answer.has_spoken() => return Err(Failure::truncated()),
            Err(_) => return Err(Failure::unreadable(&frame.data)),
        };
        if let Some(report) = Report::of(&value) {
            return Err(reported(&report));
        }
        if !value["message"].is_object() && value["done"].is_null() {
            return Err(Failure::unreadable(&frame.data));
        }
        answer.set_model(value["model"].as_str().unwrap_or_default());
        let message = &value["message"];
        answer.add_thinking(message["thinking"].as_str().unwrap_or_default())?;
        answer.add_pieces(self.tags.feed(message["content"].as_str().unwrap_or_default()))?;
        for call in message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            whole_call(call, answer)?;
        }
        if value["done"] != Value::Bool(true) {
            return Ok(Step::More);
        }
        answer.add_pieces(self.tags.end())?;
        let count = |field: &str| value[field].as_u64();
        if let Some(output_tokens) = count("eval_count") {
            answer.set_usage(Usage {
                // Omitted if the whole question was in its cache.
                input_tokens: count("prompt_eval_count").unwrap_or(0),
                output_tokens,
                ..Usage::default()
            });
        }
        answer.set_finish(match value["done_reason"].as_str() {
            Some("length") => Finish::Length,
            _ => Finish::Stop,
        });
        Ok(Step::Last)
    }
}

/// Adds a call, which comes whole. Its index is counted here, since some versions send 0 for all calls.
fn whole_call(call: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
    let function = &call["function"];
    let arguments = match &function["arguments"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    answer.add_call(Fragment {
        index: Some(answer.call_count()),
        id: call["id"].as_str().unwrap_or_default(),
        name: function["name"].as_str().unwrap_or_default(),
        arguments: &arguments,
        ..Fragment::default()
    })
}
