//! A request for a chat completion: what is honoured, what is neutral, and what is refused by its name. Nothing is ignored: a client
//! that sets something and does not get it would not know.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use talon_proto::agent::{AskRequest, Sampling};

use super::prompt::{Message, Prompt};
use crate::events::client_message::shown;
use crate::identity::Caller;
use crate::problem::{Problem, ProblemKind};

/// The model that stands for the agent as it is configured: its default, routed and with its fallbacks.
pub(super) const AGENT: &str = "talon";

/// A request, as far as it is honoured.
#[derive(Debug)]
pub(super) struct ChatRequest {
    /// As the client wrote it; its answer says the same.
    pub(super) model: String,
    pub(super) stream: bool,
    /// With `stream`: the last piece says what was used.
    pub(super) include_usage: bool,
    messages: Vec<Message>,
    sampling: Option<Sampling>,
    thinking: String,
    schema: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
    #[serde(default)]
    include_obfuscation: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: JsonSchema },
}

#[derive(Deserialize)]
struct JsonSchema {
    schema: Value,
}

impl ChatRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// A [`Problem`] that names the field which is missing, wrong, or not honoured.
    pub(super) fn read(mut body: Map<String, Value>) -> Result<Self, Problem> {
        let fields = &mut body;
        let model: String = take(fields, "model")?.ok_or_else(|| wrong("model", "it is missing"))?;
        let messages: Vec<Message> =
            take(fields, "messages")?.ok_or_else(|| wrong("messages", "it is missing"))?;
        let stream = take(fields, "stream")?.unwrap_or(false);
        let options: Option<StreamOptions> = take(fields, "stream_options")?;
        if options.is_some() && !stream {
            return Err(wrong("stream_options", "it is for stream: true alone"));
        }
        if options.as_ref().is_some_and(|options| options.include_obfuscation) {
            return Err(wrong("stream_options", "include_obfuscation is not honoured"));
        }
        let (most, most_of_old) = (take(fields, "max_completion_tokens")?, take(fields, "max_tokens")?);
        let sampling = Sampling {
            temperature: take(fields, "temperature")?,
            top_p: take(fields, "top_p")?,
            max_tokens: most.or(most_of_old),
        };
        let schema = match take(fields, "response_format")? {
            None | Some(ResponseFormat::Text) => String::new(),
            Some(ResponseFormat::JsonObject) => json!({"type": "object"}).to_string(),
            Some(ResponseFormat::JsonSchema { json_schema }) => json_schema.schema.to_string(),
        };
        let thinking = match take::<String>(fields, "reasoning_effort")?.as_deref() {
            None => String::new(),
            Some("none") => "off".to_owned(),
            Some(effort @ ("low" | "medium" | "high")) => effort.to_owned(),
            Some(_) => return Err(wrong("reasoning_effort", "it is none, low, medium or high")),
        };
        // Who the request is for says its credential; a name beside it changes nothing, and is for the client's own books.
        let _user: Option<String> = take(fields, "user")?;
        refuse_the_rest(body)?;
        let is_set = sampling != Sampling::default();
        Ok(Self {
            model,
            stream,
            include_usage: options.is_some_and(|options| options.include_usage),
            messages,
            sampling: is_set.then_some(sampling),
            thinking,
            schema,
        })
    }

    /// The question that it is.
    ///
    /// # Errors
    /// Messages that cannot be asked.
    pub(super) fn ask(&self, caller: &Caller) -> Result<AskRequest, Problem> {
        let Prompt { text, media } = Prompt::of(&self.messages)?;
        let model = if self.model == AGENT { String::new() } else { self.model.clone() };
        Ok(AskRequest {
            text,
            media,
            model,
            thinking: self.thinking.clone(),
            schema: self.schema.clone(),
            sampling: self.sampling,
            channel: caller.channel.to_string(),
            ..AskRequest::default()
        })
    }
}

/// Takes a field; `None` if it is absent or null.
fn take<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &'static str,
) -> Result<Option<T>, Problem> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value).map(Some).map_err(|error| wrong(name, &shown(&error))),
    }
}

/// Fields that are known, at the value that changes nothing.
fn is_neutral(name: &str, value: &Value) -> bool {
    if value.is_null() {
        return NEUTRAL.contains(&name);
    }
    match name {
        "n" => value == 1,
        "frequency_penalty" | "presence_penalty" => value.as_f64() == Some(0.0),
        "logprobs" | "store" => value == false,
        "parallel_tool_calls" => value.is_boolean(),
        "stop" | "tools" | "functions" => value.as_array().is_some_and(Vec::is_empty),
        "logit_bias" | "metadata" => value.as_object().is_some_and(Map::is_empty),
        "tool_choice" | "function_call" => value == "auto" || value == "none",
        "modalities" => value == &json!(["text"]),
        "service_tier" => value == "auto" || value == "default",
        "top_logprobs" => value == 0,
        _ => false,
    }
}

const NEUTRAL: [&str; 22] = [
    "n",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "store",
    "parallel_tool_calls",
    "stop",
    "tools",
    "functions",
    "logit_bias",
    "metadata",
    "tool_choice",
    "function_call",
    "modalities",
    "service_tier",
    "top_logprobs",
    "seed",
    "audio",
    "prediction",
    "verbosity",
    "web_search_options",
    "prompt_cache_key",
];

fn refuse_the_rest(rest: Map<String, Value>) -> Result<(), Problem> {
    match rest.into_iter().find(|(name, value)| !is_neutral(name, value)) {
        None => Ok(()),
        Some((name, _)) => {
            let name: String = name.chars().take(64).collect();
            let detail = format!("{name}: this value is not honoured here: leave the field out");
            Err(Problem::new(ProblemKind::BadRequest, detail).with_fields([name]))
        }
    }
}

fn wrong(name: &'static str, why: &str) -> Problem {
    Problem::new(ProblemKind::BadRequest, format!("{name}: {why}")).with_fields([name])
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
