//! Values as JSON and as messages.

use serde_json::{Number, Value};
use talon_proto::host::config_value::Kind;
use talon_proto::host::{ConfigList, ConfigMap, ConfigValue};

/// A value as JSON. A number that is not finite, and a value of a kind that is not known here, is `null`.
#[must_use]
pub fn json(value: &ConfigValue) -> Value {
    match &value.kind {
        None | Some(Kind::None(_)) => Value::Null,
        Some(Kind::Flag(flag)) => Value::Bool(*flag),
        Some(Kind::Integer(integer)) => Value::from(*integer),
        Some(Kind::Number(number)) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Some(Kind::Text(text)) => Value::from(text.as_str()),
        Some(Kind::List(list)) => list.values.iter().map(json).collect(),
        Some(Kind::Map(map)) => {
            Value::Object(map.values.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
    }
}

/// A value as a message. `null` in a list or a map is none.
#[must_use]
pub fn message(value: Value) -> ConfigValue {
    let kind = match value {
        Value::Null => Kind::None(true),
        Value::Bool(flag) => Kind::Flag(flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Kind::Integer(integer),
            // The supervisor refuses what is no finite number.
            None => Kind::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Kind::Text(text),
        Value::Array(items) => Kind::List(ConfigList { values: items.into_iter().map(message).collect() }),
        Value::Object(values) => {
            let values = values.into_iter().map(|(key, value)| (key, message(value))).collect();
            Kind::Map(ConfigMap { values })
        }
    };
    ConfigValue { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let value = serde_json::json!({"a": [1, "x", true, 0.5, null], "b": {"c.d": -3}});
        assert_eq!(json(&message(value.clone())), value);
        assert_eq!(json(&ConfigValue { kind: None }), Value::Null);
    }
}
