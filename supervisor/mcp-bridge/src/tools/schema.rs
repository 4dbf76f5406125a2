//! A tool's input schema as the parameters of an action.
//!
//! Each top-level property becomes one parameter with its own part of the schema. A tool whose arguments are
//! not an object with valid property names takes one parameter, `arguments`, which is the whole object. A
//! part that cannot be inlined becomes a parameter that takes anything, and its description says so: the tool
//! stays usable, and the server checks the value.

use serde_json::Value;
use talon_arguments::{Kinds, has_default};
use talon_bridge::text::cut;
use talon_sdk::proto::Parameter;

use super::inline::{InlineError, inline};
use super::properties::Properties;

/// The most parameters of one tool; the supervisor takes 256, and larger tools are not filled by hand.
const MAX_PARAMETERS: usize = 128;
/// The longest name of a parameter, in bytes, as in the supervisor.
const MAX_NAME_BYTES: usize = 128;
/// The longest description of a parameter, in bytes; a quarter of what the supervisor takes.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
/// The parameter that holds the whole object.
pub(crate) const WHOLE: &str = "arguments";

/// The parameters of an action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    /// The parameters that are declared to the host.
    pub(crate) list: Vec<Parameter>,
    /// Whether the only parameter is the whole object.
    pub(crate) whole: bool,
    /// Whether the tool takes arguments that are not in the list.
    pub(crate) further: bool,
}

impl Parameters {
    /// The parameters that a schema describes.
    pub(crate) fn of(schema: &Value) -> Self {
        let Some(properties) = properties(schema) else { return Self::whole(schema) };
        let parameter = |(name, piece): (&String, &Value)| {
            parameter(name, piece, schema, properties.required.contains(name))
        };
        let list = properties.named.iter().map(parameter).collect();
        Self { list, whole: false, further: properties.further }
    }

    /// One parameter that holds the whole object.
    pub(crate) fn whole(schema: &Value) -> Self {
        let mut parameter = parameter(WHOLE, schema, schema, true);
        parameter.r#type = "object".to_owned();
        if parameter.description.is_empty() {
            parameter.description = "The tool's arguments, as one JSON object.".to_owned();
        }
        Self { list: vec![parameter], whole: true, further: false }
    }

    /// Without schemas: for a server that declares more than the total limit.
    pub(crate) fn without_schemas(mut self) -> Self {
        for parameter in &mut self.list {
            parameter.schema = String::new();
            parameter.description = cut(&parameter.description, 200);
        }
        self
    }
}

/// The properties, if the arguments are an object whose properties can be parameters.
fn properties(schema: &Value) -> Option<Properties> {
    let fields = schema.as_object()?;
    if fields.get("type").is_some_and(|word| word != "object") {
        return None;
    }
    let names_some = fields.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    if !names_some {
        // What the schema allows is described elsewhere in it: the whole schema is kept.
        let described = ["$ref", "anyOf", "oneOf", "allOf", "patternProperties"]
            .iter()
            .any(|key| fields.contains_key(*key));
        let open = fields.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        if described || open {
            return None;
        }
        // `{}` and `{"type": "object"}` admit any object, as MCP says itself. Libraries write an empty list of
        // properties for a tool that takes nothing.
        let silent = !fields.contains_key("properties") && !fields.contains_key("additionalProperties");
        return Some(Properties { further: silent, ..Properties::default() });
    }
    let properties = Properties::of(fields, schema);
    let are_parameters =
        properties.named.len() <= MAX_PARAMETERS && properties.named.keys().all(|name| is_name(name));
    are_parameters.then_some(properties)
}

/// The supervisor shows names as they are, and offers no action whose name cannot be typed.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn parameter(name: &str, piece: &Value, root: &Value, required: bool) -> Parameter {
    let text = |piece: &Value, key: &str| piece.get(key).and_then(Value::as_str).map(str::to_owned);
    // A default makes it optional, whatever the server's list of required properties says.
    let required = required && !piece.as_object().is_some_and(has_default);
    let (description, kinds, schema) = match inline(piece, root) {
        Ok(inlined) => {
            let mut fields = inlined.as_object().cloned().unwrap_or_default();
            let kinds = Kinds::of_schema(&fields);
            // Python writes `null` as the default of any optional parameter.
            if fields.get("default") == Some(&Value::Null) && !kinds.admits(Kinds::NULL) {
                fields.shift_remove("default");
            }
            let title = fields.shift_remove("title");
            let description = fields.shift_remove("description").or(title);
            let description =
                description.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
            let says_more = fields.iter().any(|(key, value)| key != "type" || !value.is_string());
            let schema = if says_more { Value::Object(fields).to_string() } else { String::new() };
            (cut(&description, MAX_DESCRIPTION_BYTES), kinds, schema)
        }
        Err(why) => {
            let said = text(piece, "description").or_else(|| text(piece, "title")).unwrap_or_default();
            (
                describe_omission(&cut(&said, MAX_DESCRIPTION_BYTES), why),
                piece.as_object().map_or(Kinds::ANY, Kinds::of_schema),
                String::new(),
            )
        }
    };
    let word = kinds.single().unwrap_or("any").to_owned();
    Parameter { name: name.to_owned(), description, r#type: word, required, schema }
}

fn describe_omission(description: &str, why: InlineError) -> String {
    let gap = if description.is_empty() { "" } else { " " };
    format!("{description}{gap}(Its schema is not shown: {why}. The server checks what it gets.)")
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
