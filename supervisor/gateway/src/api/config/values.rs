//! The values of a configuration as one object.

use serde_json::{Map, Value};
use talon_config_json::json;
use talon_proto::host::ConfigEntry;

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
    use talon_config_json::message;

    use super::*;

    #[test]
    fn values_come_back_as_they_were_and_stand_at_their_keys() {
        let any = value!({"a": [1, "x", true, 0.5, null], "b": {"c.d": -3}});
        assert_eq!(json(&message(&any)), any);
        let entry = |key: &[&str], any: Value| ConfigEntry {
            key: key.iter().map(|step| (*step).to_owned()).collect(),
            value: Some(message(&any)),
            ..ConfigEntry::default()
        };
        let entries =
            [entry(&["a", "b.c"], value!(1)), entry(&["a", "d"], value!([])), entry(&["e"], value!("x"))];
        assert_eq!(Value::Object(tree(&entries)), value!({"a": {"b.c": 1, "d": []}, "e": "x"}));
    }
}
