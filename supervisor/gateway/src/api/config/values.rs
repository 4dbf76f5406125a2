//! Values of the configuration, as JSON and as messages.

use serde_json::{Map, Number, Value};
use talon_proto::host::config_value::Kind;
use talon_proto::host::{ConfigEntry, ConfigList, ConfigMap, ConfigValue};

/// A value as JSON.
pub(super) fn json(value: &ConfigValue) -> Value {
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
pub(super) fn message(value: Value) -> ConfigValue {
    let kind = match value {
        Value::Null => Kind::None(true),
        Value::Bool(flag) => Kind::Flag(flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Kind::Integer(integer),
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

/// All values as one object, each at its key.
pub(super) fn tree(entries: &[ConfigEntry]) -> Map<String, Value> {
    let mut tree = Map::new();
    for entry in entries {
        insert(&mut tree, &entry.key, entry.value.as_ref().map_or(Value::Null, json));
    }
    tree
}

fn insert(tree: &mut Map<String, Value>, key: &[String], value: Value) {
    match key {
        [] => {}
        [last] => drop(tree.insert(last.clone(), value)),
        [first, rest @ ..] => {
            let below = tree.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
            // No value stands above another one.
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn values_come_back_as_they_were_and_stand_at_their_keys() {
        let any = value!({"a": [1, "x", true, 0.5, null], "b": {"c.d": -3}});
        assert_eq!(json(&message(any.clone())), any);
        let entry = |key: &[&str], any| ConfigEntry {
            key: key.iter().map(|step| (*step).to_owned()).collect(),
            value: Some(message(any)),
            ..ConfigEntry::default()
        };
        let entries =
            [entry(&["a", "b.c"], value!(1)), entry(&["a", "d"], value!([])), entry(&["e"], value!("x"))];
        assert_eq!(Value::Object(tree(&entries)), value!({"a": {"b.c": 1, "d": []}, "e": "x"}));
    }
}
