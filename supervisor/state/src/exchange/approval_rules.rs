//! Approval rules as YAML: a map of their ids and of what the agent stores of each, as JSON.

use serde_json::{Map, Value};
use talon_store::{APPROVAL_RULE_PREFIX, Key};
use ulid::Ulid;

use super::entries::{self, Entry, SeenKeys};
use super::node::{Node, Problem};

/// The fields that change when a rule is used.
const USE: [&str; 2] = ["uses", "used_at"];
/// The fields without which the agent reads no rule.
const REQUIRED: [&str; 5] = ["id", "sender", "plugin", "action", "arguments"];

/// The id of a rule, by its key.
pub(super) fn id(key: &str) -> &str {
    key.strip_prefix(APPROVAL_RULE_PREFIX).unwrap_or(key)
}

/// Reads a rule. Returns its name for reports, and its entry.
pub(super) fn read(key: Node, value: Node, seen: &mut SeenKeys) -> (String, Result<Entry, Problem>) {
    let (record, entry) = entries::read(key, value, seen);
    let checked = entry.and_then(|(at, key, value)| {
        let wrong = |reason: &str| Problem { at, reason: reason.to_owned() };
        let id =
            Ulid::from_string(key.as_str()).map_err(|_| wrong("the id of a rule is a ULID"))?.to_string();
        let rule = fields(&value).ok_or_else(|| wrong("a rule is a JSON object in a text"))?;
        let missing = REQUIRED.into_iter().find(|field| !rule.contains_key(*field));
        if let Some(field) = missing {
            return Err(wrong(&format!("the rule has no {field}")));
        }
        if rule.get("id").and_then(Value::as_str) != Some(&id) {
            return Err(wrong("the rule says another id than its key"));
        }
        let key = Key::new(format!("{APPROVAL_RULE_PREFIX}{id}"));
        Ok((at, key.map_err(|error| wrong(&error.to_string()))?, value))
    });
    (record, checked)
}

/// Whether two rules are the same but for how often they were used.
pub(super) fn are_same(one: &[u8], other: &[u8]) -> bool {
    let rule = |bytes| {
        let mut fields = fields(bytes)?;
        fields.retain(|name, _| !USE.contains(&name.as_str()));
        Some(fields)
    };
    rule(one).is_some_and(|fields| Some(fields) == rule(other))
}

fn fields(bytes: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(bytes).ok()
}
