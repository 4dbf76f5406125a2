//! Checks that required keys are present.

use serde_json::{Map, Value};

use super::origin::{KeyPath, Origins};
use super::problem::Problem;
use super::shape::{Shape, ShapeKind};

/// Removes incomplete values, such as a map entry without a required key, and reports them. Problems that are
/// already in `known` are not reported again. Returns `false` if the document as a whole lacks a required
/// key.
pub fn remove_incomplete(
    values: &mut Map<String, Value>,
    root: &Shape,
    origins: &Origins,
    known: &mut Vec<Problem>,
) -> bool {
    let mut look = CompletenessCheck { origins, known: known.as_slice(), missing: Vec::new() };
    let mut whole = Value::Object(std::mem::take(values));
    let is_complete = look.check_value(&mut whole, root, &KeyPath::top());
    let found = look.missing;
    known.extend(found);
    if let Value::Object(whole) = whole {
        *values = whole;
    }
    is_complete
}

struct CompletenessCheck<'a> {
    origins: &'a Origins,
    known: &'a [Problem],
    missing: Vec<Problem>,
}

impl CompletenessCheck<'_> {
    /// Whether all required keys are present. Removes incomplete values below.
    fn check_value(&mut self, value: &mut Value, shape: &Shape, path: &KeyPath) -> bool {
        match (&shape.kind, value) {
            (ShapeKind::Object(fields), Value::Object(values)) => {
                let mut whole = true;
                for field in fields {
                    let below = path.key(&field.name);
                    let complete = match values.get_mut(&field.name) {
                        Some(value) => self.check_value(value, &field.shape, &below),
                        None if field.required => {
                            self.report_missing(path, &below);
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
            (ShapeKind::Map { value: shape, .. }, Value::Object(values)) => {
                values.retain(|key, value| self.check_value(value, shape, &path.key(key)));
                true
            }
            (ShapeKind::List(shape), Value::Array(items)) => {
                let mut index = 0;
                items.retain_mut(|item| {
                    index += 1;
                    self.check_value(item, shape, &path.index(index - 1))
                });
                true
            }
            _ => true,
        }
    }

    fn report_missing(&mut self, entry: &KeyPath, key: &KeyPath) {
        // A value that is present but wrong was reported before.
        if self.known.iter().any(|problem| problem.key == *key) {
            return;
        }
        let name = key.last().unwrap_or_default();
        let place = if *entry == KeyPath::top() { String::new() } else { format!(" to {entry}") };
        let problem = Problem::new(self.origins.within(entry), key.clone(), "is missing");
        self.missing.push(problem.help(format!("add \"{name}: …\"{place}")));
    }
}
