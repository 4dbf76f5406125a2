//! `talon config show`: the effective values and where each comes from, without secrets.

use std::fmt::Write;

use serde_json::{Map, Value};
use talon_plugin_config::document::origin::{KeyPath, Source};
use talon_plugin_config::document::scalar;
use talon_plugin_config::document::shape::{Shape, ShapeKind};

use super::load::Loaded;
use super::lua;
use super::schema;
use super::secret::{REDACTED, sounds_secret};

impl Loaded {
    /// The effective configuration as YAML, each value with a comment about its source. Except for secrets,
    /// the output can be loaded as the same configuration.
    #[must_use]
    pub fn show_yaml(&self) -> String {
        let mut out = String::new();
        self.yaml_map(&mut out, &self.shown_values(), &KeyPath::top(), 0, false);
        out
    }

    /// The same as JSON: `file`, `values`, and under `sources` the source of each value, by its key.
    #[must_use]
    pub fn show_json(&self) -> Value {
        let values = self.shown_values();
        let mut sources = Map::new();
        self.sources(&mut sources, &Value::Object(values.clone()), &KeyPath::top());
        serde_json::json!({ "file": self.file, "values": values, "sources": sources })
    }

    /// The values, with possible secrets hidden.
    pub(super) fn shown_values(&self) -> Map<String, Value> {
        let as_read = lua::without_written_out(&self.config);
        let mut value = serde_json::to_value(&as_read).unwrap_or_default();
        self.hide(&mut value, schema::shared(), &KeyPath::top());
        match value {
            Value::Object(values) => values,
            _ => Map::new(),
        }
    }

    /// Hides values in places that may hold secrets (a plugin's `args`, `env` and `config`), if the key
    /// sounds like one, or if the value comes from the environment, where people put secrets.
    fn hide(&self, value: &mut Value, shape: &Shape, path: &KeyPath) {
        match (&shape.kind, value) {
            (ShapeKind::Object(fields), Value::Object(values)) => {
                for field in fields {
                    let Some(value) = values.get_mut(&field.name) else { continue };
                    let below = path.key(&field.name);
                    if field.may_hold_secrets {
                        self.hide_below(value, &below, false);
                    } else {
                        self.hide(value, &field.shape, &below);
                    }
                }
            }
            (ShapeKind::Map { value: shape, .. }, Value::Object(values)) => {
                for (key, value) in values {
                    self.hide(value, shape, &path.key(key));
                }
            }
            _ => {}
        }
    }

    fn hide_below(&self, value: &mut Value, path: &KeyPath, sounds: bool) {
        match value {
            Value::Object(values) => {
                for (key, value) in values {
                    self.hide_below(value, &path.key(key), sounds || sounds_secret(key));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.hide_below(item, &path.index(index), sounds);
                }
            }
            Value::Null | Value::Bool(_) => {}
            Value::String(_) | Value::Number(_) => {
                let from_environment = self
                    .origins
                    .get(path)
                    .is_some_and(|origin| origin.substituted || matches!(origin.source, Source::Variable(_)));
                if sounds || from_environment {
                    *value = REDACTED.into();
                }
            }
        }
    }

    fn sources(&self, out: &mut Map<String, Value>, value: &Value, path: &KeyPath) {
        match value {
            Value::Object(values) if !values.is_empty() => {
                for (key, value) in values {
                    self.sources(out, value, &path.key(key));
                }
            }
            _ => {
                out.insert(path.to_string(), self.source(path).to_string().into());
            }
        }
    }

    fn yaml_map(
        &self,
        out: &mut String,
        values: &Map<String, Value>,
        path: &KeyPath,
        depth: usize,
        inline: bool,
    ) {
        for (number, (key, value)) in values.iter().enumerate() {
            // The first key of a map in a list is on the line of the list's dash.
            if !(inline && number == 0) {
                indent(out, depth);
            }
            out.push_str(&yaml_text(key));
            out.push(':');
            self.yaml_value(out, value, &path.key(key), depth + 1);
        }
    }

    fn yaml_value(&self, out: &mut String, value: &Value, path: &KeyPath, depth: usize) {
        match value {
            Value::Object(values) if !values.is_empty() => {
                out.push('\n');
                self.yaml_map(out, values, path, depth, false);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let _ = writeln!(out, "  # {}", self.source(path));
                for (index, item) in items.iter().enumerate() {
                    indent(out, depth);
                    match item {
                        Value::Object(values) if !values.is_empty() => {
                            out.push_str("- ");
                            self.yaml_map(out, values, &path.index(index), depth + 1, true);
                        }
                        _ => {
                            let _ = writeln!(out, "- {}", yaml_inline(item));
                        }
                    }
                }
            }
            _ => {
                let _ = writeln!(out, " {}  # {}", yaml_inline(value), self.source(path));
            }
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// A value as YAML in one line.
pub(crate) fn yaml_inline(value: &Value) -> String {
    match value {
        Value::String(text) => yaml_text(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(yaml_inline).collect::<Vec<_>>().join(", "))
        }
        Value::Object(values) if values.is_empty() => "{}".to_owned(),
        Value::Object(values) => {
            let one = |(key, value): (&String, &Value)| format!("{}: {}", yaml_text(key), yaml_inline(value));
            format!("{{ {} }}", values.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

/// A text as YAML that reads back as the same text: quoted where a bare word would mean something else, and
/// with doubled dollar signs where one would start a variable.
fn yaml_text(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
        && scalar::resolve(text, true).is_some_and(|value| value.is_string());
    if bare {
        return text.to_owned();
    }
    let has_variable = text.contains("$$") || text.contains("${");
    let escaped = if has_variable { text.replace('$', "$$") } else { text.to_owned() };
    // A JSON string is a YAML string in double quotes.
    Value::String(escaped).to_string()
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
