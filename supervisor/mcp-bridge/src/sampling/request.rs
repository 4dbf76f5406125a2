//! Reads `sampling/createMessage`. Pure.

use serde_json::Value;
use talon_sdk::model::{CompletionRequest, PromptMessage, PromptRole};

/// Hints that are looked at: the first that fits decides, and servers name a few.
const MAX_HINTS: usize = 16;

/// Why a request is not for a model here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("messages: there are none")]
    NoMessages,
    #[error("messages[{0}].role: write user or assistant")]
    Role(usize),
    #[error("messages[{index}].content: {kind} is not taken here, only text")]
    Content { index: usize, kind: String },
    #[error("tools are not offered in sampling: the model answers with a text")]
    Tools,
    #[error("includeContext: only none is offered: send what the model needs in messages")]
    Context,
}

/// A request of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SamplingRequest {
    completion: CompletionRequest,
    /// The models that the server would like, in its order.
    hints: Vec<String>,
}

impl SamplingRequest {
    /// Of the parameters of `sampling/createMessage`.
    ///
    /// # Errors
    /// [`RequestError`], if it asks for what there is not.
    pub(crate) fn parse(params: &Value) -> Result<Self, RequestError> {
        let has_tools = params.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
        if has_tools {
            return Err(RequestError::Tools);
        }
        let context = params.get("includeContext").and_then(Value::as_str).unwrap_or("none");
        if context != "none" {
            return Err(RequestError::Context);
        }
        let said = params.get("messages").and_then(Value::as_array).filter(|said| !said.is_empty());
        let said = said.ok_or(RequestError::NoMessages)?;
        let messages = said.iter().enumerate().map(|(index, message)| read_message(index, message));
        let messages = messages.collect::<Result<Vec<_>, _>>()?;
        let mut completion = CompletionRequest::conversation(messages)
            .system(params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default());
        if let Some(tokens) = params.get("maxTokens").and_then(Value::as_u64) {
            completion = completion.max_tokens(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        if let Some(temperature) = params.get("temperature").and_then(Value::as_f64) {
            // A temperature has few digits.
            completion = completion.temperature(temperature as f32);
        }
        for stop in params.get("stopSequences").and_then(Value::as_array).into_iter().flatten() {
            completion = completion.stop(stop.as_str().unwrap_or_default());
        }
        let hints = params.pointer("/modelPreferences/hints").and_then(Value::as_array);
        let hints = hints.into_iter().flatten().take(MAX_HINTS);
        let hints = hints.filter_map(|hint| hint.get("name")?.as_str().map(str::to_owned)).collect();
        Ok(Self { completion, hints })
    }

    /// For one of the granted aliases: the first one that a hint is a part of, or that is a part of a hint, as the protocol
    /// has it; otherwise the default.
    pub(crate) fn for_aliases(self, aliases: &[String]) -> CompletionRequest {
        let fits = |hint: &String| {
            let hint = hint.to_lowercase();
            aliases.iter().find(|alias| {
                let alias = alias.to_lowercase();
                !hint.is_empty() && (alias.contains(&hint) || hint.contains(&alias))
            })
        };
        match self.hints.iter().find_map(fits) {
            Some(alias) => self.completion.model(alias),
            None => self.completion,
        }
    }
}

fn read_message(index: usize, message: &Value) -> Result<PromptMessage, RequestError> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => PromptRole::User,
        Some("assistant") => PromptRole::Assistant,
        _ => return Err(RequestError::Role(index)),
    };
    // One piece, or a list of them.
    let content = message.get("content").cloned().unwrap_or_default();
    let pieces = match content {
        Value::Array(pieces) => pieces,
        piece => vec![piece],
    };
    let mut texts = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        match (piece.get("type").and_then(Value::as_str), piece.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(text)) => texts.push(text),
            (kind, _) => {
                let kind = kind.unwrap_or("what is no content").chars().take(32).collect();
                return Err(RequestError::Content { index, kind });
            }
        }
    }
    Ok(PromptMessage { role, text: texts.join("\n\n") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(role: &str, text: &str) -> Value {
        json!({ "role": role, "content": { "type": "text", "text": text } })
    }

    // Promises: EXT-131
    #[test]
    fn texts_instructions_and_limits_are_passed_on() {
        let params = json!({
            "messages": [text("user", "a"), text("assistant", "b"), { "role": "user", "content": [
                { "type": "text", "text": "c" }, { "type": "text", "text": "d" }] }],
            "systemPrompt": "s", "maxTokens": 7, "temperature": 0.5, "stopSequences": ["x"], "includeContext": "none",
            "modelPreferences": { "hints": [{ "name": "unknown" }, { "name": "claude-3-sonnet" }] },
        });
        let request = SamplingRequest::parse(&params).unwrap();
        let aliases = ["auto".to_owned(), "sonnet".to_owned()];
        let wanted = CompletionRequest::new("a")
            .message(PromptRole::Assistant, "b")
            .message(PromptRole::User, "c\n\nd")
            .system("s")
            .max_tokens(7)
            .temperature(0.5)
            .stop("x");
        assert_eq!(request.clone().for_aliases(&aliases), wanted.clone().model("sonnet"));
        assert_eq!(request.for_aliases(&aliases[..1]), wanted);
    }

    // Promises: EXT-131
    #[test]
    fn what_there_is_not_is_refused_by_name() {
        let image =
            json!({ "role": "user", "content": { "type": "image", "data": "", "mimeType": "image/png" } });
        for (params, says) in [
            (json!({}), "there are none"),
            (json!({ "messages": [text("system", "x")] }), "messages[0].role"),
            (json!({ "messages": [text("user", "x"), image] }), "messages[1].content: image"),
            (json!({ "messages": [text("user", "x")], "tools": [{ "name": "t" }] }), "tools are not offered"),
            (json!({ "messages": [text("user", "x")], "includeContext": "allServers" }), "includeContext"),
        ] {
            let error = SamplingRequest::parse(&params).unwrap_err().to_string();
            assert!(error.contains(says), "expected {says:?} in {error:?}");
        }
    }
}
