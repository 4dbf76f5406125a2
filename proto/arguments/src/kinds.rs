//! The kinds of values that a JSON Schema admits, as far as its keywords say so.

use std::fmt;
use std::ops::{BitAnd, BitOr};

use serde_json::{Map, Value};

/// How deep branches of a schema are followed; a deeper one may be anything. Twice what hand-written schemas
/// reach.
const MAX_DEPTH: usize = 16;
/// How many schemas and values are looked at for one parameter; what lies beyond may be anything.
const MAX_STEPS: usize = 4096;

/// A set of kinds of JSON values. Every integer is a number, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// A string.
    pub const STRING: Self = Self(1);
    /// An integer; `3.0` counts as one, as in JSON Schema.
    pub const INTEGER: Self = Self(1 << 1);
    /// A number, whole or not.
    pub const NUMBER: Self = Self(1 << 1 | 1 << 2);
    /// `true` or `false`.
    pub const BOOLEAN: Self = Self(1 << 3);
    /// An array.
    pub const ARRAY: Self = Self(1 << 4);
    /// An object.
    pub const OBJECT: Self = Self(1 << 5);
    /// `null`.
    pub const NULL: Self = Self(1 << 6);
    /// Anything.
    pub const ANY: Self = Self((1 << 7) - 1);

    const NAMED: [(Self, &'static str); 7] = [
        (Self::STRING, "string"),
        (Self::INTEGER, "integer"),
        (Self::NUMBER, "number"),
        (Self::BOOLEAN, "boolean"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
        (Self::NULL, "null"),
    ];

    /// The kind that JSON Schema calls so; `None` for a word that it does not define.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, name)| *name == word).map(|(kind, _)| *kind)
    }

    /// The kind of a value.
    #[must_use]
    pub fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() && !is_whole(number.as_f64()) => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// The kinds that a schema admits. A keyword that is not known here restricts nothing.
    #[must_use]
    pub fn of_schema(schema: &Map<String, Value>) -> Self {
        Walk { steps: MAX_STEPS }.schema(schema, 0)
    }

    /// Whether all of `other` are among these.
    #[must_use]
    pub fn admits(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// These without `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The name of the one kind apart from `null` that these are, as JSON Schema calls it.
    #[must_use]
    pub fn single(self) -> Option<&'static str> {
        let kind = self.without(Self::NULL);
        Self::NAMED.iter().find(|(one, _)| *one == kind).map(|(_, name)| *name)
    }
}

/// `integer or null`.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMED
            .iter()
            .filter(|(kind, _)| self.admits(*kind) && !(*kind == Self::INTEGER && self.admits(Self::NUMBER)))
            .map(|(_, name)| *name);
        f.write_str(names.next().unwrap_or("none"))?;
        names.try_for_each(|name| write!(f, " or {name}"))
    }
}

impl BitOr for Kinds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

fn is_whole(number: Option<f64>) -> bool {
    number.is_some_and(|number| number.fract() == 0.0)
}

/// Visits a schema within limits.
struct Walk {
    steps: usize,
}

impl Walk {
    fn step(&mut self) -> bool {
        let left = self.steps > 0;
        self.steps = self.steps.saturating_sub(1);
        left
    }

    fn schema(&mut self, schema: &Map<String, Value>, depth: usize) -> Kinds {
        if depth > MAX_DEPTH || !self.step() {
            return Kinds::ANY;
        }
        let word = |word: &str| Kinds::of_word(word).unwrap_or(Kinds::ANY);
        let mut kinds = match schema.get("type") {
            Some(Value::String(one)) => word(one),
            Some(Value::Array(words)) => self.any_of(words, |_, one| one.as_str().map_or(Kinds::ANY, word)),
            _ => Kinds::ANY,
        };
        if let Some(Value::Array(values)) = schema.get("enum") {
            kinds = kinds & self.any_of(values, |_, value| Kinds::of_value(value));
        }
        if let Some(value) = schema.get("const") {
            kinds = kinds & Kinds::of_value(value);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(key) {
                kinds = kinds & self.any_of(branches, |walk, branch| walk.value(branch, depth + 1));
            }
        }
        if let Some(Value::Array(branches)) = schema.get("allOf") {
            for branch in branches {
                kinds = kinds & self.value(branch, depth + 1);
            }
        }
        kinds
    }

    fn any_of(&mut self, items: &[Value], mut kinds: impl FnMut(&mut Self, &Value) -> Kinds) -> Kinds {
        let mut all = Kinds::NONE;
        for item in items {
            if !self.step() {
                return Kinds::ANY;
            }
            all = all | kinds(self, item);
        }
        all
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Kinds {
        match schema {
            Value::Object(fields) => self.schema(fields, depth),
            Value::Bool(false) => Kinds::NONE,
            _ => Kinds::ANY,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds(schema: Value) -> Kinds {
        Kinds::of_schema(schema.as_object().unwrap())
    }

    #[test]
    fn each_keyword_restricts_what_the_others_admit() {
        let nullable = Kinds::INTEGER | Kinds::NULL;
        for (schema, expected) in [
            (json!({}), Kinds::ANY),
            (json!({"type": "string"}), Kinds::STRING),
            (json!({"type": "uuid"}), Kinds::ANY),
            (json!({"type": ["integer", "null"]}), nullable),
            (json!({"type": ["integer", "number"]}), Kinds::NUMBER),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), nullable),
            (json!({"oneOf": [{"const": 1}, {"enum": ["a", null]}]}), nullable | Kinds::STRING),
            (json!({"enum": [1, 2.0, 3]}), Kinds::INTEGER),
            (json!({"enum": [1, 2.5]}), Kinds::NUMBER),
            (json!({"type": "number", "enum": [1, "a"]}), Kinds::INTEGER),
            (json!({"allOf": [{"type": ["string", "null"]}, {"type": ["string", "array"]}]}), Kinds::STRING),
            (json!({"anyOf": [true, {"type": "null"}]}), Kinds::ANY),
            (json!({"anyOf": [false, {"type": "null"}]}), Kinds::NULL),
            (json!({"$ref": "#/$defs/x"}), Kinds::ANY),
        ] {
            assert_eq!(kinds(schema.clone()), expected, "{schema}");
        }
        assert_eq!(nullable.single(), Some("integer"));
        assert_eq!(nullable.to_string(), "integer or null");
        assert_eq!((Kinds::STRING | Kinds::NUMBER).to_string(), "string or number");
        assert_eq!(Kinds::NUMBER.single(), Some("number"));
        assert_eq!((Kinds::ANY.single(), Kinds::NULL.single()), (None, None));
    }

    #[test]
    fn a_schema_beyond_the_limits_may_be_anything() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({ "anyOf": [deep] });
        }
        assert_eq!(kinds(deep), Kinds::ANY);
        let wide = json!({ "enum": vec!["x"; MAX_STEPS] });
        assert_eq!(kinds(wide), Kinds::ANY);
    }
}
