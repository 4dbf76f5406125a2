//! The overlay's text: read, changed, written.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use talon_plugin_config::document::origin::{InputSource, KeyPath};
use talon_plugin_config::document::problem::Problem;
use talon_plugin_config::document::shape::{Shape, ShapeKind};
use talon_plugin_config::document::walk::{ResolveContext, SchemaWalker};
use talon_plugin_config::document::yaml;

/// The head of the file.
const HEAD: &str = "# Changed while Talon ran. The supervisor writes this file: change it with `PATCH /api/config`, or remove it while\n\
                    # no supervisor runs. It stands above the config file, and below the environment and flags.\n";

/// A change of one key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edit {
    pub(crate) key: KeyPath,
    /// `None` removes it, and all below it.
    pub(crate) value: Option<Value>,
}

/// What the overlay holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OverlayDocument {
    pub(crate) values: Map<String, Value>,
}

impl OverlayDocument {
    /// Reads a text; values have the kinds that they have in YAML.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, Vec<Problem>> {
        let anything = Shape { kind: ShapeKind::Any, nullable: true };
        let source = InputSource::File(path.into());
        let node = match yaml::parse(text) {
            Ok(Some(node)) => node,
            Ok(None) => return Ok(Self::default()),
            Err(error) => return Err(vec![error.into_problem(&source, KeyPath::top())]),
        };
        let read = SchemaWalker::new(&anything, source, ResolveContext::default()).document(&node);
        if read.problems.is_empty() { Ok(Self { values: read.values }) } else { Err(read.problems) }
    }

    /// The value at a key.
    pub(crate) fn get(&self, key: &KeyPath) -> Option<&Value> {
        let (first, rest) = key.steps().split_first()?;
        rest.iter().try_fold(self.values.get(first)?, |value, step| value.as_object()?.get(step))
    }

    /// Makes a change. A map without entries goes with its last one.
    pub(crate) fn apply(&mut self, edit: &Edit) {
        let steps = edit.key.steps();
        match &edit.value {
            Some(value) => set(&mut self.values, steps, value.clone()),
            None => unset(&mut self.values, steps),
        }
    }

    /// The text that reads as this.
    pub(crate) fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        write_map(&mut text, &self.values, 0);
        text
    }
}

fn set(values: &mut Map<String, Value>, steps: &[String], value: Value) {
    match steps {
        [] => {}
        [last] => drop(values.insert(last.clone(), value)),
        [first, rest @ ..] => {
            let below = values.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            if let Value::Object(below) = below {
                set(below, rest, value);
            }
        }
    }
}

fn unset(values: &mut Map<String, Value>, steps: &[String]) {
    match steps {
        [] => {}
        [last] => drop(values.remove(last)),
        [first, rest @ ..] => {
            if let Some(Value::Object(below)) = values.get_mut(first) {
                unset(below, rest);
                if below.is_empty() {
                    values.remove(first);
                }
            }
        }
    }
}

fn write_map(text: &mut String, values: &Map<String, Value>, depth: usize) {
    for (key, value) in values {
        text.extend(std::iter::repeat_n("  ", depth));
        text.push_str(&quoted(key));
        match value {
            Value::Object(values) if !values.is_empty() => {
                text.push_str(":\n");
                write_map(text, values, depth + 1);
            }
            value => {
                text.push_str(": ");
                write_value(text, value);
                text.push('\n');
            }
        }
    }
}

/// In one line, as JSON, which is YAML.
fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::String(string) => text.push_str(&quoted(string)),
        Value::Array(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                text.push_str(if number > 0 { ", " } else { "" });
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Object(values) => {
            text.push('{');
            for (number, (key, value)) in values.iter().enumerate() {
                text.push_str(if number > 0 { ", " } else { "" });
                text.push_str(&quoted(key));
                text.push_str(": ");
                write_value(text, value);
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

/// A JSON string without characters that a reader of YAML may refuse or change.
fn quoted(string: &str) -> String {
    let json = Value::from(string).to_string();
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a text cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out
}
