//! What a declared parameter takes.

use serde_json::{Map, Value};

use crate::Kinds;

/// The kinds of values that a parameter takes, and whether it may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterKinds {
    /// What it takes.
    pub kinds: Kinds,
    /// Whether a call may be without it.
    pub is_optional: bool,
}

impl ParameterKinds {
    /// Of `Parameter.type`, `Parameter.required` and `Parameter.schema`, parsed, if it is a JSON object.
    ///
    /// The type decides, and the schema adds `null`. A type that JSON Schema does not define, such as `any`,
    /// and no type at all leave it to the schema; without a schema no type means `string`.
    #[must_use]
    pub fn new(r#type: &str, required: bool, schema: Option<&Map<String, Value>>) -> Self {
        let of_schema = schema.map_or(Kinds::ANY, Kinds::of_schema);
        // A schema that admits everything says nothing of kinds, and so nothing of `null`.
        let says_null = of_schema != Kinds::ANY && of_schema.admits(Kinds::NULL);
        let kinds = match Kinds::of_word(r#type) {
            Some(one) if says_null => one | Kinds::NULL,
            Some(one) => one,
            None if r#type.is_empty() && of_schema == Kinds::ANY => Kinds::STRING,
            None => of_schema,
        };
        Self { kinds, is_optional: !required || schema.is_some_and(has_default) }
    }
}

/// Whether a schema has a `default`: then the parameter may be left out, also where it is `required`.
#[must_use]
pub fn has_default(schema: &Map<String, Value>) -> bool {
    schema.contains_key("default")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_type_decides_and_the_schema_adds_null() {
        let nullable = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        for (word, schema, expected) in [
            ("", None, Kinds::STRING),
            ("string", None, Kinds::STRING),
            ("any", None, Kinds::ANY),
            ("integer", Some(json!({"minimum": 1})), Kinds::INTEGER),
            ("integer", Some(nullable.clone()), Kinds::INTEGER | Kinds::NULL),
            ("any", Some(json!({"type": ["string", "integer"]})), Kinds::STRING | Kinds::INTEGER),
            ("", Some(json!({"minLength": 1})), Kinds::STRING),
            ("", Some(json!({"type": "integer"})), Kinds::INTEGER),
        ] {
            let schema = schema.as_ref().and_then(Value::as_object);
            let found = ParameterKinds::new(word, true, schema);
            assert_eq!((found.kinds, found.is_optional), (expected, false), "{word} {schema:?}");
        }
        let with_default = json!({"default": null});
        assert!(ParameterKinds::new("any", true, with_default.as_object()).is_optional);
        assert!(ParameterKinds::new("any", false, None).is_optional);
    }
}
