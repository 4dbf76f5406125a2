//! Converts the text arguments of a call to the JSON that a server takes.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use talon_bridge::text::cut;
use talon_sdk::proto::Parameter;

use super::kind::Kind;
use super::schema::{Parameters, WHOLE};

/// How much of a wrong value an error repeats.
const MAX_SHOWN_BYTES: usize = 64;
/// Up to this value a float represents every integer exactly.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// An argument is not of its parameter's kind.
#[derive(Debug, thiserror::Error)]
#[error("argument `{name}`: {shown:?} is not {}", expected(*kind))]
pub(crate) struct ArgumentError {
    name: String,
    shown: String,
    kind: Kind,
}

/// Parses the arguments of one action.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    /// The kind of each parameter, and whether it is optional.
    kinds: BTreeMap<String, (Kind, bool)>,
    whole: bool,
}

impl Reader {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let kind = |parameter: &Parameter| {
            let schema = match parameter.schema.as_str() {
                "" => Value::Null,
                schema => serde_json::from_str(schema).unwrap_or_default(),
            };
            match Kind::of_schema(&serde_json::json!({ "type": parameter.r#type })) {
                Kind::Any => Kind::of_schema(&schema),
                kind => kind,
            }
        };
        let entry = |parameter: &Parameter| (parameter.name.clone(), (kind(parameter), !parameter.required));
        Self { kinds: parameters.list.iter().map(entry).collect(), whole: parameters.whole }
    }

    /// The arguments as JSON.
    ///
    /// # Errors
    /// [`ArgumentError`]
    pub(crate) fn read(&self, args: BTreeMap<String, String>) -> Result<Map<String, Value>, ArgumentError> {
        let mut read = Map::new();
        for (name, text) in args {
            let (kind, optional) = self.kinds.get(&name).copied().unwrap_or((Kind::Any, true));
            // Some callers write null instead of leaving an argument out; only a string may really mean that
            // word.
            if optional && kind != Kind::String && kind != Kind::Any && text.trim() == "null" {
                continue;
            }
            match value(kind, &text) {
                Some(value) => drop(read.insert(name, value)),
                None => return Err(ArgumentError { name, shown: cut(&text, MAX_SHOWN_BYTES), kind }),
            }
        }
        match read.remove(WHOLE) {
            Some(Value::Object(all)) if self.whole => Ok(all),
            Some(other) => {
                read.insert(WHOLE.to_owned(), other);
                Ok(read)
            }
            None => Ok(read),
        }
    }
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::String | Kind::Any => "a text",
        Kind::Integer => "an integer",
        Kind::Number => "a number",
        Kind::Boolean => "true or false",
        Kind::Array => "a JSON array such as [\"a\",\"b\"]",
        Kind::Object => "a JSON object such as {\"a\":1}",
    }
}

fn value(kind: Kind, text: &str) -> Option<Value> {
    let json = || serde_json::from_str::<Value>(text).ok();
    match kind {
        Kind::String => Some(text.into()),
        Kind::Integer => integer(text.trim()).map(Value::Number),
        Kind::Number => serde_json::from_str::<Number>(text.trim()).ok().map(Value::Number),
        Kind::Boolean => match text.trim() {
            text if text.eq_ignore_ascii_case("true") => Some(true.into()),
            text if text.eq_ignore_ascii_case("false") => Some(false.into()),
            _ => None,
        },
        Kind::Array => json().filter(Value::is_array),
        Kind::Object => json().filter(Value::is_object),
        // A mixed kind is JSON if it parses as JSON, as everywhere in Talon.
        Kind::Any => Some(json().unwrap_or_else(|| text.into())),
    }
}

/// `3.0` counts as an integer, because models write that.
fn integer(text: &str) -> Option<Number> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    let float =
        text.parse::<f64>().ok().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT_FLOAT)?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
    let whole = float as i64;
    Some(whole.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn reader(schema: &Value) -> Reader {
        Reader::new(&Parameters::of(schema))
    }

    fn args(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn texts_become_what_was_declared() {
        let schema = json!({"type": "object", "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
            "l": {"type": "array", "items": {"type": "integer"}}, "o": {"type": "object"}, "x": {},
            "opt": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
        }});
        let reader = reader(&schema);
        let texts = [
            ("s", "12"),
            ("i", "3.0"),
            ("n", "0.5"),
            ("b", "True"),
            ("l", "[1,[2]]"),
            ("o", "{\"a\":{\"b\":null}}"),
            ("x", "{\"k\":1}"),
            ("opt", "null"),
        ];
        assert_eq!(
            Value::Object(reader.read(args(&texts)).unwrap()),
            json!({"s": "12", "i": 3, "n": 0.5, "b": true, "l": [1, [2]], "o": {"a": {"b": null}}, "x": {"k": 1}})
        );
        assert_eq!(reader.read(args(&[("x", "plain words")])).unwrap()["x"], "plain words");
        for (name, text, says) in [
            ("i", "1.5", "an integer"),
            ("n", "NaN", "a number"),
            ("b", "yes", "true or false"),
            ("l", "{}", "a JSON array"),
            ("o", "[", "a JSON object"),
        ] {
            let why = reader.read(args(&[(name, text)])).unwrap_err().to_string();
            assert!(why.contains(says) && why.contains(&format!("`{name}`")), "{why}");
        }
    }

    #[test]
    fn the_whole_object_is_given_as_one() {
        let whole = reader(&json!({"anyOf": [{"required": ["a"]}]}));
        let read = whole.read(args(&[("arguments", "{\"a\":[1]}")])).unwrap();
        assert_eq!(Value::Object(read), json!({"a": [1]}));
        // A property that merely has that name is an ordinary property.
        let named = reader(&json!({"type": "object", "properties": {"arguments": {"type": "object"}}}));
        let read = named.read(args(&[("arguments", "{\"a\":1}")])).unwrap();
        assert_eq!(Value::Object(read), json!({"arguments": {"a": 1}}));
    }

    proptest! {
        #[test]
        fn integers_come_out_as_they_went_in(number in any::<i64>()) {
            prop_assert_eq!(integer(&number.to_string()), Some(number.into()));
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,40}") {
            for kind in [Kind::String, Kind::Integer, Kind::Number, Kind::Boolean, Kind::Array, Kind::Object, Kind::Any] {
                let _ = value(kind, &text);
            }
        }
    }
}
