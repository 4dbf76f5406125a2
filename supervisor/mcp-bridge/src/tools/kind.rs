//! The single kind of a parameter, as far as its schema has one.

use serde_json::{Map, Value};

/// The kind of an argument's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    /// Several of them, or anything.
    Any,
}

impl Kind {
    /// The name on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Any => "any",
        }
    }

    fn of_word(word: &str) -> Self {
        match word {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => Self::Any,
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::String,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
            Value::Null => Self::Any,
        }
    }

    /// The one kind that all values have which a schema allows.
    pub(crate) fn of_schema(schema: &Value) -> Self {
        let Some(fields) = schema.as_object() else { return Self::Any };
        match fields.get("type") {
            Some(Value::String(word)) => return Self::of_word(word),
            Some(Value::Array(words)) => {
                return common(words.iter().map(|word| word.as_str().map_or(Self::Any, Self::of_word)));
            }
            _ => {}
        }
        if let Some(values) = fields.get("enum").and_then(Value::as_array) {
            return common(values.iter().map(Self::of_value));
        }
        if let Some(value) = fields.get("const") {
            return Self::of_value(value);
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(branches) = fields.get(key).and_then(Value::as_array) {
                return common(branches.iter().map(Self::of_schema));
            }
        }
        if let Some([only]) = fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return Self::of_schema(only);
        }
        Self::Any
    }
}

fn common(mut kinds: impl Iterator<Item = Kind>) -> Kind {
    let Some(first) = kinds.next() else { return Kind::Any };
    if kinds.all(|kind| kind == first) { first } else { Kind::Any }
}

/// Removes `null` from the top of a schema: a missing argument is left out, never null. So `string or null`,
/// which is how Python writes optional parameters, is a string.
pub(crate) fn drop_null(schema: &mut Map<String, Value>) {
    if schema.get("default") == Some(&Value::Null) {
        schema.shift_remove("default");
    }
    if let Some(Value::Array(words)) = schema.get_mut("type") {
        words.retain(|word| word != "null");
        if let [only] = words.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.get_mut(key) else { continue };
        let is_null = |branch: &Value| branch.get("type").is_some_and(|word| word == "null");
        branches.retain(|branch| !is_null(branch));
        if let [only] = branches.as_slice()
            && let Some(only) = only.as_object().cloned()
        {
            schema.shift_remove(key);
            for (key, value) in only {
                schema.entry(key).or_insert(value);
            }
        }
    }
}
