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

/// A value that somebody else wrote, as JSON; `None` if it has more levels than this, a number that is not finite, or a value of a kind
/// that is not known here.
#[must_use]
pub fn bounded_json(value: ConfigValue, levels: usize) -> Option<Value> {
    let below = levels.checked_sub(1)?;
    Some(match value.kind? {
        Kind::None(_) => Value::Null,
        Kind::Flag(flag) => Value::Bool(flag),
        Kind::Integer(integer) => Value::from(integer),
        Kind::Number(number) => Value::Number(Number::from_f64(number)?),
        Kind::Text(text) => Value::String(text),
        Kind::List(list) => Value::Array(
            list.values.into_iter().map(|value| bounded_json(value, below)).collect::<Option<_>>()?,
        ),
        Kind::Map(map) => {
            let entry = |(key, value)| Some((key, bounded_json(value, below)?));
            Value::Object(map.values.into_iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

/// A value as a message. `null` in a list or a map is none.
#[must_use]
pub fn message(value: &Value) -> ConfigValue {
    let kind = match value {
        Value::Null => Kind::None(true),
        Value::Bool(flag) => Kind::Flag(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Kind::Integer(integer),
            // The supervisor refuses what is no finite number.
            None => Kind::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Kind::Text(text.clone()),
        Value::Array(items) => Kind::List(ConfigList { values: items.iter().map(message).collect() }),
        Value::Object(values) => {
            let values = values.iter().map(|(key, value)| (key.clone(), message(value))).collect();
            Kind::Map(ConfigMap { values })
        }
    };
    ConfigValue { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-127
    #[test]
    fn what_somebody_else_wrote_is_bounded() {
        const LEVELS: usize = 16;
        let deep = |levels| (1..levels).fold(Value::from(1), |inner, _| Value::Array(vec![inner]));
        assert_eq!(bounded_json(message(&deep(LEVELS)), LEVELS), Some(deep(LEVELS)));
        assert_eq!(bounded_json(message(&deep(LEVELS + 1)), LEVELS), None);
        assert_eq!(bounded_json(ConfigValue { kind: Some(Kind::Number(f64::NAN)) }, 1), None);
        assert_eq!(bounded_json(ConfigValue { kind: None }, 1), None);
    }

    #[test]
    fn a_value_comes_back_as_it_was() {
        let value = serde_json::json!({"a": [1, "x", true, 0.5, null], "b": {"c.d": -3}});
        assert_eq!(json(&message(&value)), value);
        assert_eq!(json(&ConfigValue { kind: None }), Value::Null);
        assert_eq!(bounded_json(message(&value), 3), Some(value));
    }
}
