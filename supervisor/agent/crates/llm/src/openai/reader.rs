//! The answer.

use serde_json::{Value, json};

use super::reasoning::Details;
use crate::config::Dialect;
use crate::model::{Finish, Thoughts, Usage};
use crate::remote::{Assembly, Failure, Fragment, Reader, Report, Step, reported};
use crate::wire::Frame;

/// The end of a stream.
const DONE: &str = "[DONE]";

pub(crate) struct OpenAiReader {
    provider: String,
    model: String,
    dialect: Dialect,
    thought: String,
    details: Details,
}

impl OpenAiReader {
    pub(super) fn new(provider: &str, model: &str, dialect: Dialect) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            dialect,
            thought: String::new(),
            details: Details::default(),
        }
    }

    /// One chunk of a stream, or with `part` `message` a whole answer.
    fn chunk(&mut self, value: &Value, part: &str, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        if let Some(report) = Report::of(value) {
            return Err(reported(&report));
        }
        if let Some(model) = value["model"].as_str() {
            answer.set_model(model);
        }
        if let Some(usage) = usage(&value["usage"]) {
            answer.set_usage(usage);
        }
        // Only one is asked for; OpenAI's chunk with the usage and Azure's first chunk have none.
        let choices = value["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(choice) = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(());
        };
        if let Some(report) = Report::of(choice) {
            return Err(reported(&report));
        }
        self.delta(&choice[part], answer)?;
        match choice["finish_reason"].as_str() {
            Some(reason) => answer.set_finish(finish(reason)?),
            None => return Ok(()),
        }
        self.keep(answer);
        Ok(())
    }

    fn delta(&mut self, delta: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        // Two names for the same field; a server that sends both sends the same text.
        let thought = ["reasoning_content", "reasoning"].into_iter().find_map(|field| delta[field].as_str());
        if let Some(thought) = thought {
            answer.add_thinking(thought)?;
            if self.dialect == Dialect::Deepseek {
                self.thought.push_str(thought);
            }
        }
        if let (Dialect::Openrouter, Some(details)) = (self.dialect, delta["reasoning_details"].as_array()) {
            self.details.add(details)?;
        }
        if let Some(text) = delta["content"].as_str() {
            answer.add_text(text)?;
        }
        if let Some(refusal) = delta["refusal"].as_str() {
            answer.add_text(refusal)?;
            if !refusal.is_empty() {
                answer.set_finish(Finish::Refused);
            }
        }
        for call in delta["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let function = &call["function"];
            let arguments = match &function["arguments"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                // Some send parsed JSON.
                other => other.to_string(),
            };
            answer.add_call(Fragment {
                index: call["index"].as_u64(),
                id: call["id"].as_str().unwrap_or_default(),
                name: function["name"].as_str().unwrap_or_default(),
                arguments: &arguments,
            })?;
        }
        Ok(())
    }

    fn keep(&mut self, answer: &mut Assembly<'_>) {
        let data = match self.dialect {
            Dialect::Deepseek if !self.thought.is_empty() => Some(json!(std::mem::take(&mut self.thought))),
            Dialect::Openrouter => self.details.take(),
            _ => None,
        };
        if let Some(data) = data {
            answer.set_thoughts(Thoughts {
                provider: self.provider.clone(),
                model: self.model.clone(),
                data,
            });
        }
    }
}

impl Reader for OpenAiReader {
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure> {
        let data = frame.data.trim();
        if data == DONE {
            // A stream that reports its end is complete, even without a finish reason.
            answer.set_finish(Finish::Stop);
            self.keep(answer);
            return Ok(Step::Last);
        }
        if data.is_empty() {
            return Ok(Step::More);
        }
        let value: Value = serde_json::from_str(data).map_err(|_| Failure::unreadable(data))?;
        if !value.is_object() {
            return Err(Failure::unreadable(data));
        }
        self.chunk(&value, "delta", answer)?;
        Ok(Step::More)
    }

    fn read_whole(&mut self, value: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        if value["choices"].as_array().is_none_or(Vec::is_empty) {
            return Err(Failure::unreadable(&value.to_string()));
        }
        self.chunk(value, "message", answer)?;
        answer.set_finish(Finish::Stop);
        Ok(())
    }
}

fn finish(reason: &str) -> Result<Finish, Failure> {
    Ok(match reason {
        "length" => Finish::Length,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "content_filter" => Finish::Filtered,
        // OpenRouter, vLLM and DeepSeek: it was broken off on their side.
        "error" | "abort" | "insufficient_system_resource" => {
            return Err(Failure::unexpected(format!(
                "it broke its answer off ({reason}): ask again later, or another provider"
            )));
        }
        _ => Finish::Stop,
    })
}

/// The usage, which several send with every chunk. `null` until it is known.
fn usage(value: &Value) -> Option<Usage> {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    Some(Usage {
        input_tokens: count("/prompt_tokens")?,
        // DeepSeek uses another name.
        cached_input_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
        // OpenRouter, for models that charge for it.
        cache_written_tokens: count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0),
        output_tokens: count("/completion_tokens").unwrap_or(0),
        thinking_tokens: count("/completion_tokens_details/reasoning_tokens").unwrap_or(0),
    })
}
