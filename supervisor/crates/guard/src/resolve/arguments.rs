//! Checks the arguments of a call against the parameters of its action.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use talon_proto::plugin::{Action, Parameter};
use talon_sanitize::nearest;

use super::actions::ActionRef;
use super::schema::{Budget, Patterns, Schema, SchemaError, is_integer};
use crate::text::Quoted;
use talon_sanitize::prefix;

/// Problems listed in one refusal; the rest is counted.
const MAX_PROBLEMS: usize = 8;

/// Parameters listed in one refusal; the rest is counted.
const MAX_SIGNATURE: usize = 16;

/// A declared type is a short word. A longer one is shortened.
const MAX_TYPE_BYTES: usize = 32;

/// What is wrong with the arguments of one call, bounded.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    listed: Vec<String>,
    omitted: usize,
}

impl Problems {
    /// Whether there is no problem.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    fn add(&mut self, problem: impl FnOnce() -> String) {
        if self.listed.len() < MAX_PROBLEMS { self.listed.push(problem()) } else { self.omitted += 1 }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.listed.join("; "))?;
        if self.omitted > 0 { write!(f, "; and {} more", self.omitted) } else { Ok(()) }
    }
}

/// All problems of the arguments.
pub(super) fn check(found: ActionRef<'_>, args: &BTreeMap<String, String>, patterns: &Patterns) -> Problems {
    let action = found.action();
    let mut problems = Problems::default();
    let mut budget = Budget::default();
    let is_injected = |name: &str| action.inject_context_args.iter().any(|injected| injected == name);

    for (name, value) in args {
        if is_injected(name) {
            problems.add(|| format!("argument {} is filled by the host, leave it out", Quoted(name)));
        } else if let Some(place) = action.parameters.iter().position(|parameter| parameter.name == *name) {
            let schema = || found.schema(place);
            if let Err(error) = check_value(&action.parameters[place], schema, value, patterns, &mut budget) {
                problems.add(|| format!("argument {} {error}", Quoted(name)));
            }
        } else {
            problems.add(|| unknown(name, action));
        }
    }
    for parameter in &action.parameters {
        if parameter.required && !args.contains_key(&parameter.name) && !is_injected(&parameter.name) {
            problems.add(|| format!("argument {} is missing", Quoted(&parameter.name)));
        }
    }
    problems
}

/// What the action takes, as one sentence.
pub(super) fn signature(action: &Action) -> String {
    let own = |p: &&Parameter| !action.inject_context_args.contains(&p.name);
    let total = action.parameters.iter().filter(own).count();
    if total == 0 {
        return "It takes no arguments".to_owned();
    }
    let shown: Vec<String> = action
        .parameters
        .iter()
        .filter(own)
        .take(MAX_SIGNATURE)
        .map(|p| {
            let required = if p.required { ", required" } else { "" };
            format!("{} ({}{required})", Quoted(&p.name), type_word(p))
        })
        .collect();
    let more = total - shown.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("It takes {}{rest}", shown.join(", "))
}

fn type_word(parameter: &Parameter) -> &str {
    if parameter.r#type.is_empty() { "string" } else { prefix(&parameter.r#type, MAX_TYPE_BYTES) }
}

fn unknown(name: &str, action: &Action) -> String {
    let near = nearest(name, action.parameters.iter().map(|parameter| parameter.name.as_str()));
    match near.first() {
        Some(meant) => format!("argument {} is unknown, did you mean {}?", Quoted(name), Quoted(meant)),
        None => format!("argument {} is unknown", Quoted(name)),
    }
}

/// Why a value is refused.
#[derive(Debug, thiserror::Error)]
enum ValueError {
    /// It is not written as its declared type is.
    #[error("must be {0}")]
    Type(&'static str),
    /// It does not satisfy the parameter's schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Checks a value.
fn check_value<'s>(
    parameter: &Parameter,
    schema: impl FnOnce() -> Option<Cow<'s, Schema>>,
    value: &str,
    patterns: &Patterns,
    budget: &mut Budget,
) -> Result<(), ValueError> {
    if parameter.schema.is_empty() && matches!(parameter.r#type.as_str(), "" | "string") {
        return Ok(());
    }
    let readings = parse_value(&parameter.r#type, value)?;
    let Some(schema) = schema() else {
        if !parameter.schema.is_empty() {
            tracing::debug!(parameter = %Quoted(&parameter.name), "its schema is no usable JSON object and is ignored");
        }
        return Ok(());
    };
    let mut first = None;
    for reading in readings.into_iter().flatten() {
        match schema.check(&reading, patterns, budget) {
            Ok(()) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), |error| Err(error.into()))
}

/// The possible readings of a value under a declared type. An unknown type allows two, one of which has to
/// satisfy the schema.
fn parse_value(declared: &str, value: &str) -> Result<[Option<Value>; 2], ValueError> {
    let json = || serde_json::from_str::<Value>(value).ok();
    let one = |reading: Option<Value>, wanted| match reading {
        Some(value) => Ok([Some(value), None]),
        None => Err(ValueError::Type(wanted)),
    };
    match declared {
        "" | "string" => Ok([Some(Value::from(value)), None]),
        "integer" => one(json().filter(is_integer), "an integer, such as 5"),
        "number" => one(json().filter(Value::is_number), "a number, such as 1.5"),
        "boolean" => one(json().filter(Value::is_boolean), "true or false"),
        "array" => one(json().filter(Value::is_array), "a JSON array, such as [\"a\"]"),
        "object" => one(json().filter(Value::is_object), "a JSON object, such as {\"a\": 1}"),
        _ => Ok([Some(Value::from(value)), json()]),
    }
}

#[cfg(test)]
mod tests;
