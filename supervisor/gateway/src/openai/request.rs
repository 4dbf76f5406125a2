//! A request for a chat completion.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use talon_proto::agent::{CompleteRequest, CompletionMessage, Sampling, ToolChoice};

use super::fields::{
    AnswerFormat, Function, agent_model, choice, need, refuse_the_rest, take, thinking, verbosity, wrong,
};
use super::message::ChatMessage;
use crate::identity::Caller;
use crate::problem::Problem;

/// A request, as far as it is honoured.
#[derive(Debug)]
pub(super) struct ChatRequest {
    /// As the client wrote it; its answer says the same.
    pub(super) model: String,
    pub(super) stream: bool,
    /// With `stream`: the last piece says what was used.
    pub(super) include_usage: bool,
    /// What the agent is asked, all but the channel.
    asked: CompleteRequest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
    #[serde(default)]
    include_obfuscation: bool,
}

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
struct NamedSchema {
    json_schema: JsonSchema,
}

#[derive(Deserialize)]
struct JsonSchema {
    schema: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatTool {
    Function { function: Function },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChatChoice {
    Mode(String),
    Named { function: NamedFunction },
}

#[derive(Deserialize)]
struct NamedFunction {
    name: String,
}

impl ChatRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// A [`Problem`] that names the field which is missing, wrong, or not honoured.
    pub(super) fn read(mut body: Map<String, Value>) -> Result<Self, Problem> {
        let fields = &mut body;
        let model: String = need(fields, "model")?;
        let messages: Vec<ChatMessage> = need(fields, "messages")?;
        let messages = messages.into_iter().enumerate().map(|(place, message)| message.read(place));
        let messages = messages.collect::<Result<Vec<CompletionMessage>, Problem>>()?;
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
        let format: Option<AnswerFormat<NamedSchema>> = take(fields, "response_format")?;
        let tools = take::<Vec<ChatTool>>(fields, "tools")?.unwrap_or_default();
        let tool_choice = tool_choice(take(fields, "tool_choice")?, tools.is_empty())?;
        let effort: Option<String> = take(fields, "reasoning_effort")?;
        let level: Option<String> = take(fields, "verbosity")?;
        let many_calls = take::<bool>(fields, "parallel_tool_calls")?.unwrap_or(true);
        let stop = match take(fields, "stop")? {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text],
            Some(Stop::Several(texts)) => texts,
        };
        // Who the request is for says its credential; a name beside it changes nothing, and is for the client's own books.
        let _user: Option<String> = take(fields, "user")?;
        let seed = take(fields, "seed")?;
        refuse_the_rest(body, is_neutral)?;
        let asked = CompleteRequest {
            messages,
            model: agent_model(&model),
            thinking: thinking(effort.as_deref(), "reasoning_effort")?,
            verbosity: verbosity(level.as_deref(), "verbosity")?,
            schema: AnswerFormat::schema(format, |named| named.json_schema.schema),
            sampling: (sampling != Sampling::default()).then_some(sampling),
            client_tools: tools.into_iter().map(|ChatTool::Function { function }| function.into()).collect(),
            tool_choice,
            one_call: !many_calls,
            stop,
            seed,
            ..CompleteRequest::default()
        };
        let include_usage = options.is_some_and(|options| options.include_usage);
        Ok(Self { model, stream, include_usage, asked })
    }

    /// What the agent is asked for this caller.
    pub(super) fn complete(&mut self, caller: &Caller) -> CompleteRequest {
        CompleteRequest { channel: caller.channel.to_string(), ..std::mem::take(&mut self.asked) }
    }
}

fn tool_choice(said: Option<ChatChoice>, has_no_tools: bool) -> Result<Option<ToolChoice>, Problem> {
    match said {
        None => Ok(None),
        // Without tools of the client these two say what is so anyway.
        Some(ChatChoice::Mode(mode)) if has_no_tools && (mode == "auto" || mode == "none") => Ok(None),
        Some(ChatChoice::Mode(mode)) if ["auto", "none", "required"].contains(&mode.as_str()) => {
            Ok(choice(&mode, String::new()))
        }
        Some(ChatChoice::Mode(_)) => Err(wrong("tool_choice", "it is auto, none, required, or a function")),
        Some(ChatChoice::Named { function }) => Ok(choice("tool", function.name)),
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
        "functions" => value.as_array().is_some_and(Vec::is_empty),
        "logit_bias" | "metadata" => value.as_object().is_some_and(Map::is_empty),
        "function_call" => value == "auto" || value == "none",
        "modalities" => value == &json!(["text"]),
        "service_tier" => value == "auto" || value == "default",
        "top_logprobs" => value == 0,
        // For a provider's books, as `user` is.
        "safety_identifier" => value.is_string(),
        _ => false,
    }
}

const NEUTRAL: [&str; 18] = [
    "n",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "store",
    "functions",
    "logit_bias",
    "metadata",
    "function_call",
    "modalities",
    "service_tier",
    "top_logprobs",
    "audio",
    "prediction",
    "web_search_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
];

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
