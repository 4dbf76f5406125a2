//! Fields of a request: each is honoured, neutral, or refused by its name. Nothing is ignored: a client that sets something and does not
//! get it would not know.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use talon_proto::agent::{ClientTool, ToolChoice};
use utoipa::ToSchema;

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

/// A body whose fields are read one by one, so that a problem names its field. `need` fields have to be there, `take` ones are `Option`s.
/// The struct is also what the description says of the body. It has no `Deserialize`, which would stop at a place without a name.
macro_rules! body {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_meta:meta])* $how:ident $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, utoipa::ToSchema)]
        $visibility struct $name {
            $($(#[$field_meta])* $field: $type,)+
        }

        impl $name {
            /// Takes its fields out of the others.
            ///
            /// # Errors
            /// A problem that names the field which is missing or wrong.
            fn take(fields: &mut serde_json::Map<String, serde_json::Value>) -> Result<Self, $crate::problem::Problem> {
                Ok(Self { $($field: $crate::openai::fields::$how(fields, stringify!($field))?,)+ })
            }
        }
    };
}
pub(super) use body;

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

/// How long models think; none and minimal: not at all.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
}

impl ReasoningEffort {
    /// In the agent's words; empty as configured.
    pub(super) fn thinking(this: Option<Self>) -> String {
        let word = match this {
            None => "",
            Some(Self::None | Self::Minimal) => "off",
            Some(Self::Low) => "low",
            Some(Self::Medium) => "medium",
            Some(Self::High) => "high",
        };
        word.to_owned()
    }
}

/// How detailed an answer is; the middle is the agent's own way.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verbosity {
    Low,
    Medium,
    High,
}

impl Verbosity {
    /// In the agent's words.
    pub(super) fn word(this: Option<Self>) -> String {
        let word = match this {
            None | Some(Self::Medium) => "",
            Some(Self::Low) => "low",
            Some(Self::High) => "high",
        };
        word.to_owned()
    }
}

/// The agent's word for a JSON Schema of any object.
pub(super) fn any_object() -> String {
    json!({"type": "object"}).to_string()
}

/// Which tools the model is left.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolMode {
    Auto,
    None,
    Required,
}

impl ToolMode {
    /// In the agent's words. Without tools of the client, auto and none say what is so anyway.
    pub(super) fn choice(self, has_no_tools: bool) -> Option<ToolChoice> {
        let mode = match self {
            Self::Auto | Self::None if has_no_tools => return None,
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
        };
        Some(ToolChoice { mode: mode.to_owned(), name: String::new() })
    }
}

/// That the model is to call this function of the client's.
pub(super) fn choice(name: String) -> Option<ToolChoice> {
    Some(ToolChoice { mode: "tool".to_owned(), name })
}

/// A function that the client calls.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ClientFunction)]
pub(super) struct Function {
    name: String,
    #[serde(default)]
    description: Option<String>,
    /// A JSON Schema of its arguments.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
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
