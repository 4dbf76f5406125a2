//! The answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::tool_search;
use crate::limits::{MAX_CALLS, MAX_TEXT_BYTES};
use crate::model::{Finish, Usage};
use crate::remote::{Assembly, Failure, Fragment, Reader, Report, Step, reported};
use crate::wire::Frame;

#[derive(Default)]
pub(crate) struct AnthropicReader {
    /// Thoughts in the form in which they have to be sent back, with their signatures; and searches for tools with what
    /// they found.
    thoughts: BTreeMap<u64, Map<String, Value>>,
    /// What searches ask for, in pieces.
    searches: BTreeMap<u64, String>,
    /// Blocks of other kinds, whose pieces are no calls of ours.
    others: BTreeSet<u64>,
    thought_bytes: usize,
    usage: Counts,
}

/// Token counts so far; each event has some of them.
#[derive(Default)]
struct Counts {
    plain: u64,
    cache_read: u64,
    cache_written: u64,
    output: u64,
    thinking: u64,
}

impl AnthropicReader {
    fn start(&mut self, event: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        let block = &event["content_block"];
        let index = event["index"].as_u64();
        match block["type"].as_str() {
            Some("text") => answer.add_text(block["text"].as_str().unwrap_or_default()),
            Some("tool_use") => {
                // Empty here, since it comes in pieces; some servers with this format send it whole.
                let input = block["input"].as_object().filter(|input| !input.is_empty());
                let arguments =
                    input.map(|input| Value::Object(input.clone()).to_string()).unwrap_or_default();
                answer.add_call(Fragment {
                    index,
                    id: block["id"].as_str().unwrap_or_default(),
                    name: block["name"].as_str().unwrap_or_default(),
                    arguments: &arguments,
                    ..Fragment::default()
                })
            }
            Some("thinking" | "redacted_thinking") => {
                let block = block.as_object().cloned().unwrap_or_default();
                self.count(Value::Object(block.clone()).to_string().len())?;
                answer.add_thinking(block.get("thinking").and_then(Value::as_str).unwrap_or_default())?;
                if self.thoughts.len() < MAX_CALLS {
                    self.thoughts.insert(index.unwrap_or_default(), block);
                }
                Ok(())
            }
            Some(word @ (tool_search::USE | tool_search::RESULT)) => {
                let index = index.unwrap_or_default();
                let block = block.as_object().cloned().unwrap_or_default();
                self.count(Value::Object(block.clone()).to_string().len())?;
                if self.thoughts.len() >= MAX_CALLS {
                    self.others.insert(index);
                    return Ok(());
                }
                if word == tool_search::USE {
                    self.searches.insert(index, String::new());
                }
                self.thoughts.insert(index, block);
                Ok(())
            }
            // Newer features of the format are not requested.
            _ => {
                if self.others.len() < MAX_CALLS {
                    self.others.insert(index.unwrap_or_default());
                }
                Ok(())
            }
        }
    }

    fn delta(&mut self, event: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        let delta = &event["delta"];
        let index = event["index"].as_u64();
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        match delta["type"].as_str() {
            Some("text_delta") => answer.add_text(text("text")),
            Some("input_json_delta") if index.is_some_and(|index| self.searches.contains_key(&index)) => {
                let piece = text("partial_json");
                self.count(piece.len())?;
                self.searches.entry(index.unwrap_or_default()).or_default().push_str(piece);
                Ok(())
            }
            Some("input_json_delta") if index.is_some_and(|index| self.others.contains(&index)) => Ok(()),
            Some("input_json_delta") => {
                answer.add_call(Fragment { index, arguments: text("partial_json"), ..Fragment::default() })
            }
            Some("thinking_delta") => {
                self.extend(index, "thinking", text("thinking"))?;
                answer.add_thinking(text("thinking"))
            }
            Some("signature_delta") => self.extend(index, "signature", text("signature")),
            _ => Ok(()),
        }
    }

    fn extend(&mut self, index: Option<u64>, field: &str, more: &str) -> Result<(), Failure> {
        self.count(more.len())?;
        let Some(block) = self.thoughts.get_mut(&index.unwrap_or_default()) else { return Ok(()) };
        match block.get_mut(field) {
            Some(Value::String(text)) => text.push_str(more),
            _ => drop(block.insert(field.to_owned(), json!(more))),
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        self.thought_bytes += bytes;
        if self.thought_bytes > MAX_TEXT_BYTES {
            Err(Failure::too_large("what it thought", MAX_TEXT_BYTES))
        } else {
            Ok(())
        }
    }

    fn keep(&mut self, answer: &mut Assembly<'_>) {
        for (index, pieces) in std::mem::take(&mut self.searches) {
            if let Some(block) = self.thoughts.get_mut(&index).filter(|_| !pieces.is_empty()) {
                tool_search::set_input(block, &pieces);
            }
        }
        if !self.thoughts.is_empty() {
            answer
                .set_thoughts(std::mem::take(&mut self.thoughts).into_values().map(Value::Object).collect());
        }
    }
}

impl Reader for AnthropicReader {
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure> {
        let event: Value = serde_json::from_str(&frame.data).map_err(|_| Failure::unreadable(&frame.data))?;
        // The event's name is in its data as well, for proxies that drop it.
        match event["type"].as_str() {
            Some("message_start") => {
                answer.set_model(event["message"]["model"].as_str().unwrap_or_default());
                self.usage.add(&event["message"]["usage"], answer);
            }
            Some("content_block_start") => self.start(&event, answer)?,
            Some("content_block_delta") => self.delta(&event, answer)?,
            Some("message_delta") => {
                self.usage.add(&event["usage"], answer);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.keep(answer);
                    answer.set_finish(finish(reason));
                }
            }
            Some("message_stop") => {
                answer.set_finish(Finish::Stop);
                return Ok(Step::Last);
            }
            Some("error") => return Err(reported(&Report::of(&event).unwrap_or_default())),
            Some(_) => {}
            None => match Report::of(&event) {
                Some(report) => return Err(reported(&report)),
                None => return Err(Failure::unreadable(&frame.data)),
            },
        }
        Ok(Step::More)
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Refused,
        _ => Finish::Stop,
    }
}

impl Counts {
    fn add(&mut self, value: &Value, answer: &mut Assembly<'_>) {
        if !value.is_object() {
            return;
        }
        let set = |count: &mut u64, path: &str| {
            if let Some(reported) = value.pointer(path).and_then(Value::as_u64) {
                *count = reported;
            }
        };
        set(&mut self.plain, "/input_tokens");
        set(&mut self.cache_read, "/cache_read_input_tokens");
        set(&mut self.cache_written, "/cache_creation_input_tokens");
        set(&mut self.output, "/output_tokens");
        set(&mut self.thinking, "/output_tokens_details/thinking_tokens");
        let cached = self.cache_read;
        answer.set_usage(Usage {
            // Tokens from and to the cache are counted separately.
            input_tokens: self.plain.saturating_add(cached).saturating_add(self.cache_written),
            cached_input_tokens: cached,
            cache_written_tokens: self.cache_written,
            output_tokens: self.output,
            thinking_tokens: self.thinking,
        });
    }
}
