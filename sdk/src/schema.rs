//! Derives the parameters of an action from a Rust type.
//!
//! schemars describes the arguments struct; this module splits the description into one [`Parameter`] for
//! each field.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};
use talon_proto::plugin::Parameter;

/// The kind of a parameter's text, as far as its schema names a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    /// Several types, or anything.
    Mixed,
}

impl Kind {
    fn of_word(word: &str) -> Self {
        match word {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => Self::Mixed,
        }
    }

    /// The name on the wire. A mixed kind must not be empty, which would mean string: for an unknown type
    /// hosts try a value both as text and as JSON, and check it against the schema.
    fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Mixed => "any",
        }
    }
}

/// One field of an arguments struct.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) kind: Kind,
    pub(crate) parameter: Parameter,
}

impl Field {
    /// A field that already has its description for the wire.
    pub(crate) fn of(parameter: Parameter) -> Self {
        let kind = if parameter.r#type.is_empty() { Kind::String } else { Kind::of_word(&parameter.r#type) };
        Self { kind, parameter }
    }
}

/// The type of a tool's arguments has no named fields. It holds the type's name.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the arguments type `{0}` must be a struct with named fields, or () for none")]
pub(crate) struct NotFieldsError(Cow<'static, str>);

/// The fields of `A`, in the order of their declaration.
///
/// # Errors
/// When `A` is not a struct with named fields: only such a struct can be filled from named arguments.
pub(crate) fn fields<A: JsonSchema>() -> Result<Vec<Field>, NotFieldsError> {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        // Each fragment is sent alone, so it must not refer to definitions elsewhere.
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.transforms.push(Box::new(RecursiveTransform(list_choices)));
    });
    let schema = settings.into_generator().into_root_schema_for::<A>();
    fields_of(schema.as_value()).ok_or_else(|| NotFieldsError(A::schema_name()))
}

/// Lists the values of an enum whose variants have descriptions. Such a type is a `oneOf` of constants, but
/// hosts that check arguments know `enum`, not `oneOf`. The descriptions stay beside the list, for models.
fn list_choices(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let Some(Value::Array(branches)) = object.get("oneOf") else { return };
    let mut choices = Vec::new();
    for branch in branches {
        match (branch.get("const"), branch.get("enum")) {
            (Some(only), _) => choices.push(only.clone()),
            (None, Some(Value::Array(some))) => choices.extend_from_slice(some),
            _ => return,
        }
    }
    object.insert("enum".to_owned(), choices.into());
}

fn fields_of(root: &Value) -> Option<Vec<Field>> {
    let root = root.as_object()?;
    let word = root.get("type").and_then(Value::as_str);
    if word == Some("null") {
        return Some(Vec::new());
    }
    let open_ended = root.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    let branching = ["oneOf", "anyOf", "allOf"].iter().any(|key| root.contains_key(*key));
    if word != Some("object") || open_ended || branching {
        return None;
    }
    let required: Vec<&str> = root
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let definitions = root.get("$defs").and_then(Value::as_object);
    let properties = root.get("properties").and_then(Value::as_object);
    let field = |(name, fragment): (&String, &Value)| {
        field(name, fragment, required.contains(&name.as_str()), definitions)
    };
    Some(properties.into_iter().flatten().map(field).collect())
}

fn field(name: &str, fragment: &Value, required: bool, definitions: Option<&Map<String, Value>>) -> Field {
    let mut fragment = fragment.as_object().cloned().unwrap_or_default();
    let description = fragment.remove("description");
    drop_null(&mut fragment);
    fragment.remove("title");
    // The description inside an Option describes the type; the field's own description is better.
    let inner = fragment.remove("description");
    let description = description.or(inner).and_then(|text| text.as_str().map(str::to_owned));
    let kind = kind(&fragment, definitions);
    let says_more = fragment.keys().any(|key| key != "type");
    let mut fragment = Value::Object(fragment);
    if let Some(definitions) = definitions
        && fragment.to_string().contains("\"$ref\"")
    {
        fragment["$defs"] = Value::Object(definitions.clone());
    }
    let parameter = Parameter {
        name: name.to_owned(),
        description: description.unwrap_or_default(),
        r#type: kind.word().to_owned(),
        required,
        schema: if says_more { fragment.to_string() } else { String::new() },
    };
    Field { kind, parameter }
}

/// Removes `null` from the top level of a fragment: an optional argument is left out, never null.
fn drop_null(fragment: &mut Map<String, Value>) {
    if fragment.get("default") == Some(&Value::Null) {
        fragment.remove("default");
    }
    if let Some(Value::Array(words)) = fragment.get_mut("type") {
        words.retain(|word| word != "null");
        if let [only] = words.as_slice() {
            let only = only.clone();
            fragment.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = fragment.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(branches)) = fragment.get_mut("anyOf") {
        let is_null = |branch: &Value| branch.get("type").is_some_and(|word| word == "null");
        branches.retain(|branch| !is_null(branch));
        if let [only] = branches.as_slice()
            && let Some(only) = only.as_object().cloned()
        {
            fragment.remove("anyOf");
            for (key, value) in only {
                fragment.entry(key).or_insert(value);
            }
        }
    }
}

/// The one kind that every value of a fragment has, or [`Kind::Mixed`].
fn kind(fragment: &Map<String, Value>, definitions: Option<&Map<String, Value>>) -> Kind {
    if let Some(word) = fragment.get("type") {
        return word.as_str().map_or(Kind::Mixed, Kind::of_word);
    }
    if let Some(values) = fragment.get("enum").and_then(Value::as_array) {
        return common(values.iter().map(kind_of_value));
    }
    if let Some(value) = fragment.get("const") {
        return kind_of_value(value);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(branches) = fragment.get(key).and_then(Value::as_array) {
            return common(
                branches
                    .iter()
                    .map(|branch| branch.as_object().map_or(Kind::Mixed, |branch| kind(branch, definitions))),
            );
        }
    }
    // Only a recursive type is left as a reference. One step finds its kind; a chain of references does not
    // occur.
    let target = fragment
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix("#/$defs/"))
        .and_then(|name| definitions?.get(name))
        .and_then(|target| target.get("type"))
        .and_then(Value::as_str);
    target.map_or(Kind::Mixed, Kind::of_word)
}

fn common(mut kinds: impl Iterator<Item = Kind>) -> Kind {
    let Some(first) = kinds.next() else { return Kind::Mixed };
    if kinds.all(|kind| kind == first) { first } else { Kind::Mixed }
}

fn kind_of_value(value: &Value) -> Kind {
    match value {
        Value::String(_) => Kind::String,
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_f64() => Kind::Number,
        Value::Number(_) => Kind::Integer,
        Value::Array(_) => Kind::Array,
        Value::Object(_) => Kind::Object,
        Value::Null => Kind::Mixed,
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
