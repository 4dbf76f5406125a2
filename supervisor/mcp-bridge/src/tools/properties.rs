//! The properties of an object's schema, those of its branches (`allOf`, `anyOf`, `oneOf`, `then`, `else`) included.
//!
//! A property of a branch is one that a call may set, so it has to be among the parameters. Which of them go
//! together is not said there: the server checks it.

use serde_json::{Map, Value, json};

use super::inline::inline;

/// How deep branches within branches are followed. Schemas written by hand have one level; what lies deeper is
/// not listed, and the tool takes further arguments then.
const MAX_DEPTH: usize = 4;

/// What an object may hold.
#[derive(Debug, Default)]
pub(super) struct Properties {
    /// Their schemas, by name.
    pub(super) named: Map<String, Value>,
    /// Those that no object may be without.
    pub(super) required: Vec<String>,
    /// Whether others are allowed, as the schema says explicitly.
    pub(super) further: bool,
}

impl Properties {
    /// Of a schema, whose references are to `root`.
    pub(super) fn of(schema: &Map<String, Value>, root: &Value) -> Self {
        let mut all = Self::own(schema);
        // Then no property of a branch is allowed, either.
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            all.add_branches(schema, root, 0);
        }
        all
    }

    fn own(schema: &Map<String, Value>) -> Self {
        let named = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let others = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        Self { named, required, further: others || schema.contains_key("patternProperties") }
    }

    fn add_branches(&mut self, schema: &Map<String, Value>, root: &Value, depth: usize) {
        let listed = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        for branch in listed("allOf") {
            let Some(branch) = self.branch(branch, root, depth) else { continue };
            for (name, piece) in branch.named {
                self.named.entry(name).or_insert(piece);
            }
            self.required.extend(branch.required);
            self.further |= branch.further;
        }
        for key in ["anyOf", "oneOf"] {
            let branches: Vec<Self> =
                listed(key).filter_map(|branch| self.branch(branch, root, depth)).collect();
            if let Some((first, others)) = branches.split_first() {
                let everywhere = |name: &&String| others.iter().all(|other| other.required.contains(name));
                self.required.extend(first.required.iter().filter(everywhere).cloned());
            }
            self.add_alternatives(branches);
        }
        let conditional = ["then", "else"].into_iter().filter_map(|key| schema.get(key));
        let conditional = conditional.filter_map(|branch| self.branch(branch, root, depth)).collect();
        self.add_alternatives(conditional);
    }

    /// Adds what one of several branches may bring.
    fn add_alternatives(&mut self, branches: Vec<Self>) {
        let mut pieces: Map<String, Value> = Map::new();
        for branch in branches {
            self.further |= branch.further;
            for (name, piece) in branch.named {
                match pieces.get_mut(&name) {
                    None => {
                        pieces.insert(name, json!([piece]));
                    }
                    Some(Value::Array(known)) if !known.contains(&piece) => known.push(piece),
                    Some(_) => {}
                }
            }
        }
        for (name, piece) in pieces {
            let piece = match piece {
                Value::Array(mut one) if one.len() == 1 => one.remove(0),
                several => json!({ "anyOf": several }),
            };
            self.named.entry(name).or_insert(piece);
        }
    }

    /// The properties of a branch. `None`: it is not known what it says, and then anything may come.
    fn branch(&mut self, branch: &Value, root: &Value, depth: usize) -> Option<Self> {
        let whole = match branch {
            Value::Bool(_) => return None,
            branch if depth < MAX_DEPTH => inline(branch, root).ok(),
            _ => None,
        };
        let Some(Value::Object(fields)) = whole else {
            self.further = true;
            return None;
        };
        let mut all = Self::own(&fields);
        all.add_branches(&fields, root, depth + 1);
        Some(all)
    }
}

#[cfg(test)]
#[path = "properties_tests.rs"]
mod tests;
