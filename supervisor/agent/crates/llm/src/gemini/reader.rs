//! The answer.

use serde_json::{Map, Value, json};

use super::contents::SIGNATURE;
use crate::model::{Finish, Usage};
use crate::remote::{Assembly, Failure, Fragment, Reader, Report, Step, reported};
use crate::wire::Frame;

/// Reads one answer.
#[derive(Default)]
pub(crate) struct GeminiReader {
    /// The signature of a text.
    signature: Option<Value>,
}

impl GeminiReader {
    fn chunk(&mut self, value: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        if let Some(report) = Report::of(value) {
            return Err(reported(&report));
        }
        answer.set_model(value["modelVersion"].as_str().unwrap_or_default());
        if let Some(usage) = usage(&value["usageMetadata"]) {
            answer.set_usage(usage);
        }
        if value.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string) {
            // The question itself was withheld: there is no candidate.
            answer.set_finish(Finish::Filtered);
        }
        let Some(candidate) = value["candidates"].as_array().and_then(|candidates| candidates.first()) else {
            return Ok(());
        };
        for part in candidate["content"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default() {
            self.part(part, answer)?;
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            answer.set_finish(finish(reason)?);
            if let Some(signature) = self.signature.take() {
                answer.set_thoughts(json!({ SIGNATURE: signature }));
            }
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        let signature = part.get(SIGNATURE).filter(|signature| signature.is_string());
        let call = &part["functionCall"];
        if call.is_object() {
            let arguments = match &call["args"] {
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let extra = Map::from_iter(signature.map(|signature| (SIGNATURE.to_owned(), signature.clone())));
            return answer.add_call(Fragment {
                // Each comes whole.
                index: Some(answer.call_count()),
                id: call["id"].as_str().unwrap_or_default(),
                name: call["name"].as_str().unwrap_or_default(),
                arguments: &arguments,
                extra: Some(&extra),
            });
        }
        let text = part["text"].as_str().unwrap_or_default();
        if part["thought"] == Value::Bool(true) {
            return answer.add_thinking(text);
        }
        if let Some(signature) = signature {
            self.signature = Some(signature.clone());
        }
        answer.add_text(text)
    }
}

impl Reader for GeminiReader {
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure> {
        let value: Value = serde_json::from_str(&frame.data).map_err(|_| Failure::unreadable(&frame.data))?;
        // An error may stand in a list.
        if !value.is_object() && Report::of(&value).is_none() {
            return Err(Failure::unreadable(&frame.data));
        }
        self.chunk(&value, answer)?;
        // The stream just ends; the usage is in the last chunk.
        Ok(Step::More)
    }

    /// A proxy may drop `alt=sse`: then all chunks are one list.
    fn read_whole(&mut self, value: &Value, answer: &mut Assembly<'_>) -> Result<(), Failure> {
        let chunks = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for chunk in chunks {
            self.chunk(chunk, answer)?;
        }
        if answer.is_finished() { Ok(()) } else { Err(Failure::unreadable(&value.to_string())) }
    }
}

fn finish(reason: &str) -> Result<Finish, Failure> {
    Ok(match reason {
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::Filtered,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE" => {
            return Err(Failure::unexpected(format!(
                "its model wrote a call that it does not take itself ({reason}): ask again, or another model"
            )));
        }
        _ => Finish::Stop,
    })
}

fn usage(value: &Value) -> Option<Usage> {
    let count = |field: &str| value[field].as_u64();
    let thinking_tokens = count("thoughtsTokenCount").unwrap_or(0);
    Some(Usage {
        input_tokens: count("promptTokenCount")?
            .saturating_add(count("toolUsePromptTokenCount").unwrap_or(0)),
        cached_input_tokens: count("cachedContentTokenCount").unwrap_or(0),
        cache_written_tokens: 0,
        // Thoughts are counted beside the answer.
        output_tokens: count("candidatesTokenCount").unwrap_or(0).saturating_add(thinking_tokens),
        thinking_tokens,
    })
}
