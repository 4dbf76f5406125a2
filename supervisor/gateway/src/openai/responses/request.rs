//! A request for a response.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use talon_proto::agent::{ClientTool, Sampling, ToolChoice};

use super::super::fields::{
    AnswerFormat, Function, choice, need, refuse_the_rest, take, thinking, verbosity, wrong,
};
use super::ids::StoredId;
use super::items::{self, Item};
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
    pub(super) echo: Map<String, Value>,
}

#[derive(Deserialize)]
struct TextOptions {
    #[serde(default)]
    format: Option<AnswerFormat<NamedSchema>>,
    #[serde(default)]
    verbosity: Option<String>,
}

#[derive(Deserialize)]
struct NamedSchema {
    schema: Value,
}

#[derive(Deserialize)]
struct Reasoning {
    #[serde(default)]
    effort: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool {
    Function(Function),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Choice {
    Mode(String),
    Named { name: String },
}

/// A field, and what stands there if the request says nothing.
type EchoedField = (&'static str, fn() -> Value);

/// What a response repeats of its request.
const ECHOED: [EchoedField; 11] = [
    ("instructions", || Value::Null),
    ("max_output_tokens", || Value::Null),
    ("metadata", || json!({})),
    ("parallel_tool_calls", || json!(true)),
    ("previous_response_id", || Value::Null),
    ("reasoning", || json!({"effort": null, "summary": null})),
    ("temperature", || Value::Null),
    ("text", || json!({"format": {"type": "text"}})),
    ("tool_choice", || json!("auto")),
    ("tools", || json!([])),
    ("top_p", || Value::Null),
];

impl ResponseRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// A [`Problem`] that names the field which is missing, wrong, or not honoured.
    pub(super) fn read(mut body: Map<String, Value>) -> Result<Self, Problem> {
        let fields = &mut body;
        let echo = echo(fields);
        let model: String = need(fields, "model")?;
        let items = items::read(need(fields, "input")?)?;
        let store = take(fields, "store")?.unwrap_or(true);
        let previous: Option<String> = take(fields, "previous_response_id")?;
        let previous = previous.map(|id| StoredId::read("resp", &id).ok_or_else(no_response)).transpose()?;
        if previous.is_some() && !store {
            return Err(wrong(
                "store",
                "what follows a stored response is stored as well: leave one of both out",
            ));
        }
        let sampling = Sampling {
            temperature: take(fields, "temperature")?,
            top_p: take(fields, "top_p")?,
            max_tokens: take(fields, "max_output_tokens")?,
        };
        let text: Option<TextOptions> = take(fields, "text")?;
        let (format, level) = text.map_or((None, None), |text| (text.format, text.verbosity));
        let reasoning: Option<Reasoning> = take(fields, "reasoning")?;
        let effort = reasoning.and_then(|reasoning| reasoning.effort);
        let tools = take::<Vec<Tool>>(fields, "tools")?.unwrap_or_default();
        let choice = tool_choice(take(fields, "tool_choice")?, tools.is_empty())?;
        let many_calls = take::<bool>(fields, "parallel_tool_calls")?.unwrap_or(true);
        let instructions = take::<String>(fields, "instructions")?.unwrap_or_default();
        let stream = take(fields, "stream")?.unwrap_or(false);
        let metadata = metadata(take(fields, "metadata")?.unwrap_or_default())?;
        let _user: Option<String> = take(fields, "user")?;
        refuse_the_rest(body, is_neutral)?;
        Ok(Self {
            model,
            items,
            instructions,
            stream,
            store,
            previous,
            tools: tools.into_iter().map(|Tool::Function(function)| function.into()).collect(),
            choice,
            one_call: !many_calls,
            sampling: (sampling != Sampling::default()).then_some(sampling),
            schema: AnswerFormat::schema(format, |named| named.schema),
            thinking: thinking(effort.as_deref(), "reasoning")?,
            verbosity: verbosity(level.as_deref(), "text")?,
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

fn echo(fields: &Map<String, Value>) -> Map<String, Value> {
    let said = |name: &str| fields.get(name).filter(|value| !value.is_null()).cloned();
    ECHOED.iter().map(|(name, usual)| ((*name).to_owned(), said(name).unwrap_or_else(usual))).collect()
}

/// What a response repeats if its request is known no more, but for what is stored of it.
pub(super) fn stored_echo(metadata: BTreeMap<String, String>) -> Map<String, Value> {
    echo(&Map::from_iter([("metadata".to_owned(), json!(metadata))]))
}

fn tool_choice(said: Option<Choice>, has_no_tools: bool) -> Result<Option<ToolChoice>, Problem> {
    match said {
        None => Ok(None),
        Some(Choice::Mode(mode)) if has_no_tools && (mode == "auto" || mode == "none") => Ok(None),
        Some(Choice::Mode(mode)) if ["auto", "none", "required"].contains(&mode.as_str()) => {
            Ok(choice(&mode, String::new()))
        }
        Some(Choice::Mode(_)) => Err(wrong("tool_choice", "it is auto, none, required, or a function")),
        Some(Choice::Named { name }) => Ok(choice("tool", name)),
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
            (&all.metadata["topic"], &all.echo["metadata"]["topic"]),
            (&"demo".to_owned(), &json!("demo"))
        );
        assert_eq!(stored_echo(BTreeMap::new())["metadata"], json!({}));
        assert_eq!(
            (&all.echo["temperature"], &all.echo["previous_response_id"]),
            (&json!(0.5), &Value::Null)
        );
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
