//! A request for a chat completion.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use talon_proto::agent::{CompleteRequest, CompletionMessage, Sampling, ToolChoice};
use utoipa::ToSchema;

use super::fields::{
    Function, ReasoningEffort, ToolMode, Verbosity, agent_model, any_object, body, choice, refuse_the_rest,
    wrong,
};
use super::message::ChatMessage;
use crate::identity::Caller;
use crate::problem::Problem;
use crate::turn::needed_chunks;

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

body! {
    /// A conversation, and how it is to be answered. OpenAI's other fields are taken at the value that changes nothing; everything else is
    /// refused by its name.
    pub(super) struct ChatBody {
        /// talon, a tier of it (talon/cheap), provider/name, or an alias.
        need model: String,
        need messages: Vec<ChatMessage>,
        take stream: Option<bool>,
        /// With `stream` alone.
        take stream_options: Option<StreamOptions>,
        /// The most tokens of the answer.
        take max_completion_tokens: Option<u32>,
        /// The old name of `max_completion_tokens`.
        take max_tokens: Option<u32>,
        take temperature: Option<f64>,
        take top_p: Option<f64>,
        take response_format: Option<ChatFormat>,
        /// Functions of the client's, beside the server's own tools.
        take tools: Option<Vec<ChatTool>>,
        take tool_choice: Option<ChatToolChoice>,
        take reasoning_effort: Option<ReasoningEffort>,
        take verbosity: Option<Verbosity>,
        /// False: one call of the client's functions at most in each answer.
        take parallel_tool_calls: Option<bool>,
        /// Texts that end the answer.
        take stop: Option<Stop>,
        /// For the client's own books: who the request is for says its credential.
        take user: Option<String>,
        take seed: Option<i64>,
    }
}

/// What a stream has beside its pieces.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    /// Whether the last piece says what was used.
    #[serde(default)]
    include_usage: bool,
    /// False alone.
    #[serde(default)]
    include_obfuscation: bool,
}

/// One text, or several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "it is a text or a list of texts")]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// The form of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: JsonSchema },
}

impl ChatFormat {
    /// The JSON Schema of the answer, as the agent reads it; empty for any text.
    fn schema(this: Option<Self>) -> String {
        match this {
            None | Some(Self::Text) => String::new(),
            Some(Self::JsonObject) => any_object(),
            Some(Self::JsonSchema { json_schema }) => json_schema.schema.to_string(),
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
struct JsonSchema {
    /// A JSON Schema that the answer has to fit.
    #[schema(value_type = Object)]
    schema: Value,
}

/// A tool of the client's.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatTool {
    Function { function: Function },
}

/// Which tools the model is left: auto, none, required, or one function.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "it is auto, none, required, or a function")]
enum ChatToolChoice {
    Mode(ToolMode),
    Named { function: NamedFunction },
}

#[derive(Debug, Deserialize, ToSchema)]
struct NamedFunction {
    name: String,
}

impl ChatRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// A [`Problem`] that names the field which is missing, wrong, or not honoured.
    pub(super) fn read(mut body: Map<String, Value>) -> Result<Self, Problem> {
        let ChatBody {
            model,
            messages,
            stream,
            stream_options: options,
            max_completion_tokens,
            max_tokens,
            temperature,
            top_p,
            response_format,
            tools,
            tool_choice: chosen,
            reasoning_effort,
            verbosity,
            parallel_tool_calls,
            stop,
            user: _user,
            seed,
        } = ChatBody::take(&mut body)?;
        let messages = messages.into_iter().enumerate().map(|(place, message)| message.read(place));
        let messages = messages.collect::<Result<Vec<CompletionMessage>, Problem>>()?;
        let stream = stream.unwrap_or(false);
        if options.is_some() && !stream {
            return Err(wrong("stream_options", "it is for stream: true alone"));
        }
        if options.as_ref().is_some_and(|options| options.include_obfuscation) {
            return Err(wrong("stream_options", "include_obfuscation is not honoured"));
        }
        let sampling = Sampling { temperature, top_p, max_tokens: max_completion_tokens.or(max_tokens) };
        let tools = tools.unwrap_or_default();
        let stop = match stop {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text],
            Some(Stop::Several(texts)) => texts,
        };
        refuse_the_rest(body, is_neutral)?;
        let asked = CompleteRequest {
            messages,
            model: agent_model(&model),
            thinking: ReasoningEffort::thinking(reasoning_effort),
            verbosity: Verbosity::word(verbosity),
            schema: ChatFormat::schema(response_format),
            tool_choice: tool_choice(chosen, tools.is_empty()),
            sampling: (sampling != Sampling::default()).then_some(sampling),
            client_tools: tools.into_iter().map(|ChatTool::Function { function }| function.into()).collect(),
            one_call: parallel_tool_calls == Some(false),
            stop,
            seed,
            ..CompleteRequest::default()
        };
        let include_usage = options.is_some_and(|options| options.include_usage);
        Ok(Self { model, stream, include_usage, asked })
    }

    /// What the agent is asked for this caller.
    pub(super) fn complete(&mut self, caller: &Caller) -> CompleteRequest {
        CompleteRequest {
            channel: caller.channel.to_string(),
            chunks: needed_chunks(self.stream),
            ..std::mem::take(&mut self.asked)
        }
    }
}

fn tool_choice(said: Option<ChatToolChoice>, has_no_tools: bool) -> Option<ToolChoice> {
    match said? {
        ChatToolChoice::Mode(mode) => mode.choice(has_no_tools),
        ChatToolChoice::Named { function } => choice(function.name),
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
