//! The answer.

use serde_json::{Map, Value, json};

use super::quirks::{Quirks, ThoughtsBack};
use super::reasoning::Details;
use crate::model::{Finish, Usage};
use crate::remote::{Assembly, Failure, Fragment, Reader, Report, Step, reported};
use crate::wire::{Frame, ThinkTags};

/// The end of a stream.
const DONE: &str = "[DONE]";

/// The fields of a call that the format has; all others are a server's own.
const CALL_FIELDS: [&str; 4] = ["index", "id", "type", "function"];

pub(crate) struct OpenAiReader {
    quirks: Quirks,
    tags: ThinkTags,
    thought: String,
    details: Details,
}

impl OpenAiReader {
    pub(super) fn new(quirks: Quirks) -> Self {
        let tags = if quirks.think_tags { ThinkTags::default() } else { ThinkTags::none() };
        Self { quirks, tags, thought: String::new(), details: Details::default() }
    }

    /// One chunk of a stream, or with `part` `message` a whole answer.
    fn chunk(&mut self, value: &Value, part: &str, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        if let Some(report) = Report::of(value) {
            return Err(reported(&report));
        }
        if let Some(model) = value["model"].as_str() {
            answer.set_model(model);
        }
        // Groq's last chunk has it under its own name.
        let used = ["/usage", "/x_groq/usage"].into_iter().find_map(|path| usage(value.pointer(path)?));
        if let Some(usage) = used {
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
        self.keep(answer)
    }

    fn delta(&mut self, delta: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        // Two names for the same field; a server that sends both sends the same text.
        let thought = ["reasoning_content", "reasoning"].into_iter().find_map(|field| delta[field].as_str());
        if let Some(thought) = thought {
            answer.add_thinking(thought)?;
            if self.quirks.thoughts == ThoughtsBack::ReasoningContent {
                self.thought.push_str(thought);
            }
        }
        if let (ThoughtsBack::ReasoningDetails, Some(details)) =
            (self.quirks.thoughts, delta["reasoning_details"].as_array())
        {
            self.details.add(details)?;
        }
        self.content(&delta["content"], answer)?;
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
                extra: self.quirks.echoes_fields.then(|| extra(call)).as_ref(),
            })?;
        }
        Ok(())
    }

    /// A text, or a list of parts: Mistral's models that think send one.
    fn content(&mut self, content: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        if let Some(text) = content.as_str() {
            return answer.add_pieces(self.tags.feed(text));
        }
        for part in content.as_array().map(Vec::as_slice).unwrap_or_default() {
            match part["type"].as_str() {
                Some("thinking" | "reasoning") => {
                    for text in texts(&part["thinking"]) {
                        answer.add_thinking(text)?;
                    }
                }
                Some("refusal") => {
                    answer.add_text(part["refusal"].as_str().unwrap_or_default())?;
                    answer.set_finish(Finish::Refused);
                }
                _ => {
                    for text in part.as_str().into_iter().chain(texts(&part["text"])) {
                        answer.add_pieces(self.tags.feed(text))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        answer.add_pieces(self.tags.end())?;
        let data = match self.quirks.thoughts {
            ThoughtsBack::ReasoningContent if !self.thought.is_empty() => {
                Some(json!(std::mem::take(&mut self.thought)))
            }
            ThoughtsBack::ReasoningDetails => self.details.take(),
            ThoughtsBack::ReasoningContent | ThoughtsBack::Never => None,
        };
        if let Some(data) = data {
            answer.set_thoughts(data);
        }
        Ok(())
    }
}

/// A text, or the texts of a list of parts.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

fn extra(call: &Value) -> Map<String, Value> {
    let fields = call.as_object().into_iter().flatten();
    let own = fields.filter(|(field, value)| !CALL_FIELDS.contains(&field.as_str()) && !value.is_null());
    own.map(|(field, value)| (field.clone(), value.clone())).collect()
}

impl Reader for OpenAiReader {
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure> {
        let data = frame.data.trim();
        if data == DONE {
            // A stream that reports its end is complete, even without a finish reason.
            answer.set_finish(Finish::Stop);
            self.keep(answer)?;
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
        self.keep(answer)
    }
}

fn finish(reason: &str) -> Result<Finish, Failure> {
    Ok(match reason {
        // Mistral: the model's own window.
        "length" | "model_length" | "max_tokens" => Finish::Length,
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
