//! Checks that required keys are present.

use serde_json::{Map, Value};

use super::origin::{KeyPath, Origins};
use super::problem::Problem;
use super::shape::{Kind, Shape};

/// Removes incomplete values, such as a map entry without a required key, and reports them. Problems that are already
/// in `known` are not reported again. Returns `false` if the document as a whole lacks a required key.
pub fn complete(
    values: &mut Map<String, Value>,
    root: &Shape,
    origins: &Origins,
    known: &mut Vec<Problem>,
) -> bool {
    let mut look = Look { origins, known: known.as_slice(), found: Vec::new() };
    let mut whole = Value::Object(std::mem::take(values));
    let is_complete = look.value(&mut whole, root, &KeyPath::top());
    let found = look.found;
    known.extend(found);
    if let Value::Object(whole) = whole {
        *values = whole;
    }
    is_complete
}

struct Look<'a> {
    origins: &'a Origins,
    known: &'a [Problem],
    found: Vec<Problem>,
}

impl Look<'_> {
    /// Whether all required keys are present. Removes incomplete values below.
    fn value(&mut self, value: &mut Value, shape: &Shape, path: &KeyPath) -> bool {
        match (&shape.kind, value) {
            (Kind::Object(fields), Value::Object(values)) => {
                let mut whole = true;
                for field in fields {
                    let below = path.key(&field.name);
                    let complete = match values.get_mut(&field.name) {
                        Some(value) => self.value(value, &field.shape, &below),
                        None if field.required => {
                            self.missing(path, &below);
                            false
                        }
                        None => true,
                    };
                    if !complete {
                        values.remove(&field.name);
                        whole &= !field.required;
                    }
                }
                whole
            }
            (Kind::Map { value: shape, .. }, Value::Object(values)) => {
                values.retain(|key, value| self.value(value, shape, &path.key(key)));
                true
            }
            (Kind::List(shape), Value::Array(items)) => {
                let mut index = 0;
                items.retain_mut(|item| {
                    index += 1;
                    self.value(item, shape, &path.index(index - 1))
                });
                true
            }
            _ => true,
        }
    }

    fn missing(&mut self, entry: &KeyPath, key: &KeyPath) {
        // A value that is present but wrong was reported before.
        if self.known.iter().any(|problem| problem.key == *key) {
            return;
        }
        let name = key.last().unwrap_or_default();
        let place = if *entry == KeyPath::top() { String::new() } else { format!(" to {entry}") };
        let problem = Problem::new(self.origins.within(entry), key.clone(), "is missing");
        self.found.push(problem.help(format!("add \"{name}: …\"{place}")));
    }
}
