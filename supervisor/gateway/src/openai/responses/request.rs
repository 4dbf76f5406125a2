//! A request for a response.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use talon_proto::agent::{ClientTool, Sampling, ToolChoice};
use utoipa::ToSchema;

use super::super::fields::{
    Function, ReasoningEffort, ToolMode, Verbosity, any_object, body, choice, refuse_the_rest, wrong,
};
use super::ids::StoredId;
use super::items::{self, Item, ResponseInput};
use crate::problem::{Problem, ProblemKind};

/// A request, as far as it is honoured.
#[derive(Debug)]
pub(super) struct ResponseRequest {
    pub(super) model: String,
    pub(super) items: Vec<Item>,
    pub(super) instructions: String,
    pub(super) stream: bool,
    pub(super) store: bool,
    pub(super) previous: Option<StoredId>,
    pub(super) tools: Vec<ClientTool>,
    pub(super) choice: Option<ToolChoice>,
    pub(super) one_call: bool,
    pub(super) sampling: Option<Sampling>,
    pub(super) schema: String,
    pub(super) thinking: String,
    pub(super) verbosity: String,
    /// What is stored with it for its client alone.
    pub(super) metadata: BTreeMap<String, String>,
    /// What its response repeats of it.
    pub(super) echo: EchoedFields,
}

body! {
    /// What is said, and how it is to be answered. OpenAI's other fields are taken at the value that changes nothing; everything else is
    /// refused by its name.
    pub(super) struct ResponseBody {
        /// talon, a tier of it (talon/cheap), provider/name, or an alias.
        need model: String,
        #[schema(value_type = ResponseInput)]
        need input: Value,
        /// For this response alone.
        take instructions: Option<String>,
        take stream: Option<bool>,
        /// Without it, true.
        take store: Option<bool>,
        /// The stored response that this one goes on from.
        take previous_response_id: Option<String>,
        take temperature: Option<f64>,
        take top_p: Option<f64>,
        take max_output_tokens: Option<u32>,
        take text: Option<TextOptions>,
        take reasoning: Option<ReasoningOptions>,
        /// Functions of the client's, beside the server's own tools.
        take tools: Option<Vec<ResponseTool>>,
        take tool_choice: Option<ResponseToolChoice>,
        /// False: one call of the client's functions at most in each answer.
        take parallel_tool_calls: Option<bool>,
        /// What is stored with it: at most 16 entries, keys of 64 characters and values of 512.
        take metadata: Option<BTreeMap<String, String>>,
        /// For the client's own books: who the request is for says its credential.
        take user: Option<String>,
    }
}

/// The form of the answer.
#[derive(Debug, Deserialize, ToSchema)]
struct TextOptions {
    #[serde(default)]
    format: Option<ResponseFormat>,
    #[serde(default)]
    verbosity: Option<Verbosity>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema {
        /// A JSON Schema that the answer has to fit.
        #[schema(value_type = Object)]
        schema: Value,
    },
}

impl ResponseFormat {
    /// The JSON Schema of the answer, as the agent reads it; empty for any text.
    fn schema(this: Option<Self>) -> String {
        match this {
            None | Some(Self::Text) => String::new(),
            Some(Self::JsonObject) => any_object(),
            Some(Self::JsonSchema { schema }) => schema.to_string(),
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
struct ReasoningOptions {
    #[serde(default)]
    effort: Option<ReasoningEffort>,
}

/// A tool of the client's.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseTool {
    Function(Function),
}

/// Which tools the model is left: auto, none, required, or one function.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "it is auto, none, required, or a function")]
enum ResponseToolChoice {
    Mode(ToolMode),
    Named { name: String },
}

/// What a response repeats of its request, as it was written.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct EchoedFields {
    #[schema(value_type = Option<String>, required = true)]
    instructions: Value,
    #[schema(value_type = Option<u32>, required = true)]
    max_output_tokens: Value,
    #[schema(value_type = BTreeMap<String, String>)]
    metadata: Value,
    #[schema(value_type = bool)]
    parallel_tool_calls: Value,
    #[schema(value_type = Option<String>, required = true)]
    previous_response_id: Value,
    #[schema(value_type = ReasoningOptions)]
    reasoning: Value,
    #[schema(value_type = Option<f64>, required = true)]
    temperature: Value,
    #[schema(value_type = TextOptions)]
    text: Value,
    #[schema(value_type = ResponseToolChoice)]
    tool_choice: Value,
    #[schema(value_type = Vec<ResponseTool>)]
    tools: Value,
    #[schema(value_type = Option<f64>, required = true)]
    top_p: Value,
}

impl EchoedFields {
    /// Of a request's fields. What is absent or null stands there as what it means.
    fn of(fields: &Map<String, Value>) -> Self {
        let said = |name: &str, usual: Value| {
            fields.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(usual)
        };
        Self {
            instructions: said("instructions", Value::Null),
            max_output_tokens: said("max_output_tokens", Value::Null),
            metadata: said("metadata", json!({})),
            parallel_tool_calls: said("parallel_tool_calls", json!(true)),
            previous_response_id: said("previous_response_id", Value::Null),
            reasoning: said("reasoning", json!({"effort": null, "summary": null})),
            temperature: said("temperature", Value::Null),
            text: said("text", json!({"format": {"type": "text"}})),
            tool_choice: said("tool_choice", json!("auto")),
            tools: said("tools", json!([])),
            top_p: said("top_p", Value::Null),
        }
    }
}

impl ResponseRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// A [`Problem`] that names the field which is missing, wrong, or not honoured.
    pub(super) fn read(mut body: Map<String, Value>) -> Result<Self, Problem> {
        let echo = EchoedFields::of(&body);
        let ResponseBody {
            model,
            input,
            instructions,
            stream,
            store,
            previous_response_id: previous,
            temperature,
            top_p,
            max_output_tokens: max_tokens,
            text,
            reasoning,
            tools,
            tool_choice: chosen,
            parallel_tool_calls,
            metadata: noted,
            user: _user,
        } = ResponseBody::take(&mut body)?;
        let items = items::read(input)?;
        let store = store.unwrap_or(true);
        let previous = previous.map(|id| StoredId::read("resp", &id).ok_or_else(no_response)).transpose()?;
        if previous.is_some() && !store {
            return Err(wrong(
                "store",
                "what follows a stored response is stored as well: leave one of both out",
            ));
        }
        let sampling = Sampling { temperature, top_p, max_tokens };
        let (format, level) = text.map_or((None, None), |text| (text.format, text.verbosity));
        let tools = tools.unwrap_or_default();
        let metadata = metadata(noted.unwrap_or_default())?;
        refuse_the_rest(body, is_neutral)?;
        Ok(Self {
            model,
            items,
            instructions: instructions.unwrap_or_default(),
            stream: stream.unwrap_or(false),
            store,
            previous,
            choice: tool_choice(chosen, tools.is_empty()),
            tools: tools.into_iter().map(|ResponseTool::Function(function)| function.into()).collect(),
            one_call: parallel_tool_calls == Some(false),
            sampling: (sampling != Sampling::default()).then_some(sampling),
            schema: ResponseFormat::schema(format),
            thinking: ReasoningEffort::thinking(reasoning.and_then(|reasoning| reasoning.effort)),
            verbosity: Verbosity::word(level),
            metadata,
            echo,
        })
    }
}

/// The most entries of metadata, and characters of a key and of a value: as OpenAI's API has it, and the agent checks again.
const MAX_METADATA: (usize, usize, usize) = (16, 64, 512);

fn metadata(said: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Problem> {
    let (entries, key_chars, value_chars) = MAX_METADATA;
    let fits =
        |key: &str, value: &str| key.chars().count() <= key_chars && value.chars().count() <= value_chars;
    if said.len() > entries || !said.iter().all(|(key, value)| fits(key, value)) {
        let why = format!(
            "it has at most {entries} entries, keys of {key_chars} characters and values of {value_chars}: keep the rest elsewhere"
        );
        return Err(wrong("metadata", &why));
    }
    Ok(said)
}

/// There is no such response; or it is somebody else's, which nobody can tell.
pub(super) fn no_response() -> Problem {
    Problem::new(ProblemKind::BadRequest, "there is no such response: send the conversation itself")
        .with_fields(["previous_response_id"])
        .with_code("previous_response_not_found")
}

/// What a response repeats if its request is known no more, but for what is stored of it.
pub(super) fn stored_echo(metadata: BTreeMap<String, String>) -> EchoedFields {
    EchoedFields::of(&Map::from_iter([("metadata".to_owned(), json!(metadata))]))
}

fn tool_choice(said: Option<ResponseToolChoice>, has_no_tools: bool) -> Option<ToolChoice> {
    match said? {
        ResponseToolChoice::Mode(mode) => mode.choice(has_no_tools),
        ResponseToolChoice::Named { name } => choice(name),
    }
}

/// Fields that are known, at the value that changes nothing.
fn is_neutral(name: &str, value: &Value) -> bool {
    if value.is_null() {
        return NEUTRAL.contains(&name);
    }
    match name {
        "background" => value == false,
        // Thoughts are the server's own affair, so there are none to include.
        "include" => value.as_array().is_some_and(|all| {
            all.iter()
                .all(|one| one == "reasoning.encrypted_content" || one == "message.output_text.logprobs")
        }),
        "service_tier" => value == "auto" || value == "default",
        "stream_options" => value.as_object().is_some_and(|options| {
            options.iter().all(|(name, value)| name == "include_obfuscation" && value == false)
        }),
        "top_logprobs" => value == 0,
        "truncation" => value == "disabled" || value == "auto",
        "safety_identifier" => value.is_string(),
        _ => false,
    }
}

const NEUTRAL: [&str; 13] = [
    "background",
    "conversation",
    "include",
    "max_tool_calls",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "stream_options",
    "top_logprobs",
    "truncation",
    "context_management",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: Value) -> Result<ResponseRequest, Problem> {
        let mut body = json!({"model": "talon", "input": "Hi"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ResponseRequest::read(body.as_object().unwrap().clone())
    }

    // Promises: GW-174
    #[test]
    fn every_field_is_honoured_neutral_or_refused_by_its_name() {
        let all = read(json!({"instructions": "Be brief.", "store": false, "temperature": 0.5, "max_output_tokens": 9,
            "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": true}, "verbosity": "low"},
            "reasoning": {"effort": "high", "summary": "auto"}, "parallel_tool_calls": false, "stream": true, "user": "u",
            "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": true}],
            "tool_choice": {"type": "function", "name": "look"}, "truncation": "disabled", "include": [],
            "metadata": {"topic": "demo"}}))
        .unwrap();
        assert_eq!(
            (all.thinking.as_str(), all.verbosity.as_str(), all.schema.as_str()),
            ("high", "low", r#"{"type":"object"}"#)
        );
        assert!(all.one_call && all.stream && !all.store && all.tools[0].strict);
        assert_eq!(all.choice.unwrap().name, "look");
        assert_eq!(
            (&all.metadata["topic"], &all.echo.metadata["topic"]),
            (&"demo".to_owned(), &json!("demo"))
        );
        assert_eq!(stored_echo(BTreeMap::new()).metadata, json!({}));
        assert_eq!((&all.echo.temperature, &all.echo.previous_response_id), (&json!(0.5), &Value::Null));
        for (refused, field) in [
            (json!({"tools": [{"type": "web_search"}]}), "tools"),
            (json!({"background": true}), "background"),
            (json!({"metadata": {"a": 1}}), "metadata"),
            (json!({"metadata": {"a": "x".repeat(513)}}), "metadata"),
            (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
            (json!({"previous_response_id": "resp_01ARZ3NDEKTSV4RRFFQ69G5FAV_1", "store": false}), "store"),
            (json!({"conversation": "conv_1"}), "conversation"),
            (json!({"unheard_of": 1}), "unheard_of"),
            (json!({"input": 7}), "input"),
        ] {
            assert_eq!(read(refused.clone()).unwrap_err().fields(), [field], "{refused}");
        }
    }
}
