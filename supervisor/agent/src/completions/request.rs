//! Reads what a plugin asks. Pure.

use talon_guard::Sanitizer;
use talon_llm::model::{Message, Request, ToolChoice};
use talon_proto::model::CompleteRequest;
use talon_sanitize::{FamilyCounts, prefix};

use super::grant::Grant;
use super::limits::{MAX_MESSAGES, MAX_STOP_BYTES, MAX_STOPS};
use super::refusal::RefusalError;
use crate::stop_sequences::cut_at_stop;
use crate::tokens::{Estimate, TokenCounter as _};

/// How much of a text that does not fit is shown.
const MAX_SHOWN_BYTES: usize = 64;
/// The most that a temperature may be; providers take 1 or 2.
const MAX_TEMPERATURE: f32 = 2.0;

/// What a plugin asks, ready for a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prompt {
    /// The granted name.
    pub(super) alias: String,
    pub(super) request: Request,
    pub(super) input_tokens: u64,
    /// The texts before which the answer ends.
    pub(super) stop: Vec<String>,
    /// The call that it names; empty for none.
    pub(super) call_id: String,
}

impl Prompt {
    /// Reads a request. A plugin's text may repeat anything, so control syntax in it is neutralized, as in results.
    pub(super) fn parse(
        asked: CompleteRequest,
        grant: &Grant,
        sanitizer: &Sanitizer,
    ) -> Result<Self, RefusalError> {
        let CompleteRequest { model, messages, system, max_tokens, temperature, stop, call_id } = asked;
        let alias = granted_alias(model, grant)?;
        let clean = |text: &str| sanitizer.text(text, &mut FamilyCounts::default()).into_owned();
        if messages.len() > MAX_MESSAGES {
            return invalid(format!(
                "messages: {} of them, and {MAX_MESSAGES} are the most: join some",
                messages.len()
            ));
        }
        if messages.last().is_none_or(|last| last.role != "user" || last.text.trim().is_empty()) {
            return invalid("messages: the last one has to be the user's, with a text".to_owned());
        }
        if temperature.is_some_and(|value| !(0.0..=MAX_TEMPERATURE).contains(&value)) {
            return invalid(format!("temperature: write a number from 0 to {MAX_TEMPERATURE}"));
        }
        if stop.len() > MAX_STOPS || stop.iter().any(|text| text.is_empty() || text.len() > MAX_STOP_BYTES) {
            return invalid(format!("stop: at most {MAX_STOPS} texts of 1 to {MAX_STOP_BYTES} bytes each"));
        }
        let mut texts = Vec::with_capacity(messages.len() + 1);
        if !system.trim().is_empty() {
            texts.push(Message::System { text: clean(&system) });
        }
        for (index, message) in messages.iter().enumerate() {
            let text = clean(&message.text);
            texts.push(match message.role.as_str() {
                "user" => Message::User { text },
                "assistant" => Message::Assistant { text, calls: Vec::new(), thoughts: None },
                other => {
                    let other = prefix(other, MAX_SHOWN_BYTES);
                    return invalid(format!(
                        "messages[{index}].role: {other:?} is none; write user or assistant, and use system for instructions"
                    ));
                }
            });
        }
        let said = messages.iter().map(|message| Estimate.count(&message.text)).sum::<usize>();
        let tokens = said.saturating_add(Estimate.count(&system));
        let wanted = if max_tokens == 0 { grant.max_tokens } else { max_tokens.min(grant.max_tokens) };
        let request = Request {
            messages: texts,
            tool_choice: ToolChoice::None,
            is_general_thinking: true,
            max_output_tokens: Some(wanted),
            temperature,
            ..Request::default()
        };
        let input_tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
        Ok(Self { alias, request, input_tokens, stop, call_id })
    }

    /// Where the text ends: before the first of the stops, if one is in it.
    pub(super) fn cut(&self, text: &mut String) -> bool {
        cut_at_stop(&self.stop, text)
    }
}

fn granted_alias(model: String, grant: &Grant) -> Result<String, RefusalError> {
    let Some(first) = grant.aliases.first() else { return Err(RefusalError::TakenBack) };
    if model.is_empty() {
        return Ok(first.clone());
    }
    if grant.aliases.contains(&model) {
        return Ok(model);
    }
    let requested = prefix(&model, MAX_SHOWN_BYTES).to_owned();
    Err(RefusalError::UnknownModel { requested, granted: grant.aliases.join(", ") })
}

fn invalid<T>(text: String) -> Result<T, RefusalError> {
    Err(RefusalError::Invalid(text))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
