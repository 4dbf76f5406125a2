//! The answer.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::limits::{MAX_CALLS, MAX_TEXT_BYTES};
use crate::model::{Finish, Usage};
use crate::remote::{Assembly, Failure, Fragment, Reader, Report, Step, reported};
use crate::wire::Frame;

/// Reads one answer.
#[derive(Default)]
pub(crate) struct ResponsesReader {
    /// Thoughts as they came, and the places of text and calls among them.
    order: Vec<Value>,
    has_thoughts: bool,
    bytes: usize,
    /// The items of which something came in pieces, so that the whole item at its end brings nothing new.
    streamed: HashSet<u64>,
}

impl ResponsesReader {
    /// An item that has begun.
    fn begin(&mut self, item: &Value, index: u64, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        if item["type"] != "function_call" {
            return Ok(());
        }
        answer.add_call(Fragment {
            index: Some(index),
            id: item["call_id"].as_str().unwrap_or_default(),
            name: item["name"].as_str().unwrap_or_default(),
            ..Fragment::default()
        })
    }

    /// An item that is whole. Some servers send no pieces before it.
    fn end(&mut self, item: &Value, index: u64, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        let is_new = !self.streamed.contains(&index);
        match item["type"].as_str() {
            Some("function_call") => {
                if is_new {
                    answer.add_call(Fragment {
                        index: Some(index),
                        id: item["call_id"].as_str().unwrap_or_default(),
                        name: item["name"].as_str().unwrap_or_default(),
                        arguments: item["arguments"].as_str().unwrap_or_default(),
                        ..Fragment::default()
                    })?;
                }
                self.keep(json!({ "type": "function_call" }))
            }
            Some("message") => {
                let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                for part in parts.iter().filter(|_| is_new) {
                    answer.add_text(part["text"].as_str().unwrap_or_default())?;
                    refuse(part["refusal"].as_str().unwrap_or_default(), answer)?;
                }
                self.keep(json!({ "type": "message" }))
            }
            Some("reasoning") => {
                let parts = item["summary"].as_array().map(Vec::as_slice).unwrap_or_default();
                for part in parts.iter().filter(|_| is_new) {
                    answer.add_thinking(part["text"].as_str().unwrap_or_default())?;
                }
                // Without its encryption it is known by its id alone, and nothing is stored there.
                if item["encrypted_content"].is_string() {
                    self.has_thoughts = true;
                    let mut item = item.clone();
                    if let Some(fields) = item.as_object_mut() {
                        fields.remove("status");
                        fields.remove("content");
                    }
                    return self.keep(item);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn keep(&mut self, item: Value) -> Result<(), Failure> {
        self.bytes += item.to_string().len();
        if self.bytes > MAX_TEXT_BYTES {
            return Err(Failure::too_large("what it thought", MAX_TEXT_BYTES));
        }
        // Calls are bounded where they are put together, and there is about one thought for each.
        if self.order.len() < 2 * MAX_CALLS {
            self.order.push(item);
        }
        Ok(())
    }

    /// The whole response at the end: its usage, and why it ended.
    fn close(&mut self, response: &Value, answer: &mut Assembly<'_>) {
        answer.set_model(response["model"].as_str().unwrap_or_default());
        if let Some(usage) = usage(&response["usage"]) {
            answer.set_usage(usage);
        }
        answer.set_finish(match response.pointer("/incomplete_details/reason").and_then(Value::as_str) {
            Some("content_filter") => Finish::Filtered,
            Some(_) => Finish::Length,
            None => Finish::Stop,
        });
        if self.has_thoughts {
            answer.set_thoughts(Value::Array(std::mem::take(&mut self.order)));
        }
    }
}

fn refuse(refusal: &str, answer: &mut Assembly<'_>) -> Result<(), Failure> {
    if !refusal.is_empty() {
        answer.set_finish(Finish::Refused);
    }
    answer.add_text(refusal)
}

impl Reader for ResponsesReader {
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure> {
        if frame.data.trim() == "[DONE]" {
            return Ok(Step::Last);
        }
        let event: Value = serde_json::from_str(&frame.data).map_err(|_| Failure::unreadable(&frame.data))?;
        let index = event["output_index"].as_u64().unwrap_or_default();
        let delta = event["delta"].as_str().unwrap_or_default();
        let kind = event["type"].as_str();
        if kind.is_some_and(|kind| kind.ends_with(".delta")) && self.streamed.len() <= 2 * MAX_CALLS {
            self.streamed.insert(index);
        }
        match kind {
            Some("response.output_text.delta") => answer.add_text(delta)?,
            Some("response.refusal.delta") => refuse(delta, answer)?,
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                answer.add_thinking(delta)?;
            }
            Some("response.output_item.added") => self.begin(&event["item"], index, answer)?,
            Some("response.function_call_arguments.delta") => {
                answer.add_call(Fragment { index: Some(index), arguments: delta, ..Fragment::default() })?;
            }
            Some("response.output_item.done") => self.end(&event["item"], index, answer)?,
            Some("response.created" | "response.in_progress") => {
                answer.set_model(event["response"]["model"].as_str().unwrap_or_default());
            }
            Some("response.completed" | "response.incomplete") => {
                self.close(&event["response"], answer);
                return Ok(Step::Last);
            }
            Some("response.failed") => {
                return Err(reported(&Report::of(&event["response"]).unwrap_or_default()));
            }
            // Its fields stand in the event itself, or below `error`.
            Some("error") => {
                let report = Report::of(&event).or_else(|| Report::of(&json!({ "error": event })));
                return Err(reported(&report.unwrap_or_default()));
            }
            Some(_) => {}
            None => match Report::of(&event) {
                Some(report) => return Err(reported(&report)),
                None => return Err(Failure::unreadable(&frame.data)),
            },
        }
        Ok(Step::More)
    }

    fn read_whole(&mut self, value: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        let Some(items) = value["output"].as_array() else {
            return Err(Failure::unreadable(&value.to_string()));
        };
        for (index, item) in (0_u64..).zip(items) {
            self.end(item, index, answer)?;
        }
        self.close(value, answer);
        Ok(())
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    Some(Usage {
        input_tokens: count("/input_tokens")?,
        cached_input_tokens: count("/input_tokens_details/cached_tokens").unwrap_or(0),
        cache_written_tokens: 0,
        output_tokens: count("/output_tokens").unwrap_or(0),
        thinking_tokens: count("/output_tokens_details/reasoning_tokens").unwrap_or(0),
    })
}
