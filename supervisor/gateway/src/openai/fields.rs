//! Fields of a request: each is honoured, neutral, or refused by its name. Nothing is ignored: a client that sets something and does not
//! get it would not know.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use talon_proto::agent::{ClientTool, ToolChoice};

use crate::events::client_message::shown;
use crate::problem::{Problem, ProblemKind};

/// The model that stands for the agent as it is configured: its default, routed and with its fallbacks.
pub(super) const AGENT: &str = "talon";

/// The longest name of a field that is repeated.
const MAX_NAME_CHARS: usize = 64;

/// The agent's name of a model; empty for its default.
pub(super) fn agent_model(name: &str) -> String {
    if name == AGENT { String::new() } else { name.to_owned() }
}

/// Takes a field; `None` if it is absent or null.
pub(super) fn take<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &'static str,
) -> Result<Option<T>, Problem> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value).map(Some).map_err(|error| wrong(name, &shown(&error))),
    }
}

/// Takes a field that has to be there.
pub(super) fn need<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &'static str,
) -> Result<T, Problem> {
    take(fields, name)?.ok_or_else(|| wrong(name, "it is missing"))
}

/// Refuses the first of the fields that are left which `is_neutral` does not know at this value.
pub(super) fn refuse_the_rest(
    rest: Map<String, Value>,
    is_neutral: fn(&str, &Value) -> bool,
) -> Result<(), Problem> {
    match rest.into_iter().find(|(name, value)| !is_neutral(name, value)) {
        None => Ok(()),
        Some((name, _)) => {
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            let detail = format!("{name}: this value is not honoured here: leave the field out");
            Err(Problem::new(ProblemKind::BadRequest, detail).with_fields([name]))
        }
    }
}

/// A problem of one field.
pub(super) fn wrong(name: &str, why: &str) -> Problem {
    Problem::new(ProblemKind::BadRequest, format!("{name}: {why}")).with_fields([name])
}

/// A JSON Schema of the answer, as the agent reads it; empty for any text.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AnswerFormat<S> {
    Text,
    JsonObject,
    JsonSchema(S),
}

impl<S> AnswerFormat<S> {
    pub(super) fn schema(this: Option<Self>, of: impl FnOnce(S) -> Value) -> String {
        match this {
            None | Some(Self::Text) => String::new(),
            Some(Self::JsonObject) => json!({"type": "object"}).to_string(),
            Some(Self::JsonSchema(schema)) => of(schema).to_string(),
        }
    }
}

/// How long models think, in the agent's words.
pub(super) fn thinking(effort: Option<&str>, field: &str) -> Result<String, Problem> {
    Ok(match effort {
        None => String::new(),
        Some("none" | "minimal") => "off".to_owned(),
        Some(effort @ ("low" | "medium" | "high")) => effort.to_owned(),
        Some(_) => return Err(wrong(field, "it is none, minimal, low, medium or high")),
    })
}

/// How detailed an answer is; the middle is the agent's own way.
pub(super) fn verbosity(level: Option<&str>, field: &str) -> Result<String, Problem> {
    Ok(match level {
        None | Some("medium") => String::new(),
        Some(level @ ("low" | "high")) => level.to_owned(),
        Some(_) => return Err(wrong(field, "it is low, medium or high")),
    })
}

/// A function that the client calls.
#[derive(Debug, Deserialize)]
pub(super) struct Function {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    strict: Option<bool>,
}

impl From<Function> for ClientTool {
    fn from(function: Function) -> Self {
        let Function { name, description, parameters, strict } = function;
        Self {
            name,
            description: description.unwrap_or_default(),
            parameters: parameters.map(|schema| schema.to_string()).unwrap_or_default(),
            strict: strict.unwrap_or(false),
        }
    }
}

/// Which tools the model is left.
pub(super) fn choice(mode: &str, name: String) -> Option<ToolChoice> {
    Some(ToolChoice { mode: mode.to_owned(), name })
}
