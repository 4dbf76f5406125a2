//! Checks the arguments of a call against the parameters of its action.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use talon_arguments::{Arguments, Kinds, ParameterKinds, Reading, has_default, read_text};
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

/// All problems of arguments that came as texts.
pub(super) fn check(found: ActionRef<'_>, args: &BTreeMap<String, String>, patterns: &Patterns) -> Problems {
    let action = found.action();
    let mut problems = Problems::default();
    let mut budget = Budget::default();
    for (name, value) in args {
        let Some(place) = place(action, name, &mut problems) else { continue };
        let schema = || found.schema(place);
        if let Err(error) = check_text(&action.parameters[place], schema, value, patterns, &mut budget) {
            problems.add(|| format!("argument {} {error}", Quoted(name)));
        }
    }
    add_missing(found, |name| args.contains_key(name), &mut problems);
    problems
}

/// All problems of arguments that came as JSON. What is put right of a value is put right in both forms.
pub(super) fn check_json(
    found: ActionRef<'_>,
    json: &mut Arguments,
    texts: &mut BTreeMap<String, String>,
    patterns: &Patterns,
) -> Problems {
    let action = found.action();
    let mut problems = Problems::default();
    let mut budget = Budget::default();
    let mut changed = Vec::new();
    for (name, value) in json.iter() {
        let Some(place) = place(action, name, &mut problems) else { continue };
        let schema = found.schema(place);
        match check_typed(&action.parameters[place], schema.as_deref(), value, patterns, &mut budget) {
            Ok(Typed::AsItIs) => {}
            Ok(other) => changed.push((name.to_owned(), other)),
            Err(error) => problems.add(|| format!("argument {} {error}", Quoted(name))),
        }
    }
    for (name, typed) in changed {
        match typed {
            Typed::Read(value) => {
                texts.insert(name.clone(), value.clone());
                json.insert_json(&name, value);
            }
            Typed::LeftOut => {
                texts.remove(&name);
                json.remove(&name);
            }
            Typed::AsItIs => {}
        }
    }
    add_missing(found, |name| json.get(name).is_some(), &mut problems);
    problems
}

/// The index of the parameter of this name. `None`: there is nothing to check, or the caller may not set it, which
/// is added to the problems.
fn place(action: &Action, name: &str, problems: &mut Problems) -> Option<usize> {
    if is_injected(action, name) {
        problems.add(|| format!("argument {} is filled by the host, leave it out", Quoted(name)));
        return None;
    }
    let place = action.parameters.iter().position(|parameter| parameter.name == *name);
    if place.is_none() && !action.takes_further_arguments {
        problems.add(|| unknown(name, action));
    }
    place
}

fn is_injected(action: &Action, name: &str) -> bool {
    action.inject_context_args.iter().any(|injected| injected == name)
}

fn add_missing(found: ActionRef<'_>, given: impl Fn(&str) -> bool, problems: &mut Problems) {
    let action = found.action();
    for (place, parameter) in action.parameters.iter().enumerate() {
        let name = &parameter.name;
        if parameter.required
            && !given(name)
            && !is_injected(action, name)
            && !found.schema(place).is_some_and(|schema| has_default(schema.keywords()))
        {
            problems.add(|| format!("argument {} is missing", Quoted(name)));
        }
    }
}

/// What the action takes, as one sentence.
pub(super) fn signature(action: &Action) -> String {
    let own = |p: &&Parameter| !action.inject_context_args.contains(&p.name);
    let total = action.parameters.iter().filter(own).count();
    if total == 0 {
        let none =
            if action.takes_further_arguments { "It takes any arguments" } else { "It takes no arguments" };
        return none.to_owned();
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
    let further = if action.takes_further_arguments { ", and any others" } else { "" };
    format!("It takes {}{rest}{further}", shown.join(", "))
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
    /// It is of none of the kinds that are taken.
    #[error("must be of type {0}")]
    Kinds(Kinds),
    /// It does not satisfy the parameter's schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl ValueError {
    /// It is of none of these kinds.
    fn of_kinds(kinds: Kinds) -> Self {
        match kinds.single() {
            Some(one) if !kinds.admits(Kinds::NULL) => Self::Type(spelling(one)),
            _ => Self::Kinds(kinds),
        }
    }
}

/// What a value of a kind looks like.
fn spelling(kind: &str) -> &'static str {
    match kind {
        "integer" => "an integer, such as 5",
        "number" => "a number, such as 1.5",
        "boolean" => "true or false",
        "array" => "a JSON array, such as [\"a\"]",
        "object" => "a JSON object, such as {\"a\": 1}",
        _ => "a string",
    }
}

/// Checks a value that came as text.
fn check_text<'s>(
    parameter: &Parameter,
    schema: impl FnOnce() -> Option<Cow<'s, Schema>>,
    value: &str,
    patterns: &Patterns,
    budget: &mut Budget,
) -> Result<(), ValueError> {
    if parameter.schema.is_empty() && matches!(parameter.r#type.as_str(), "" | "string") {
        return Ok(());
    }
    let schema = schema();
    let Some(value) = parse_text(parameter, schema.as_deref(), value)? else { return Ok(()) };
    check_schema(parameter, schema.as_deref(), &value, patterns, budget)
}

fn check_schema(
    parameter: &Parameter,
    schema: Option<&Schema>,
    value: &Value,
    patterns: &Patterns,
    budget: &mut Budget,
) -> Result<(), ValueError> {
    match schema {
        Some(schema) => schema.check(value, patterns, budget).map_err(Into::into),
        None => {
            if !parameter.schema.is_empty() {
                tracing::debug!(parameter = %Quoted(&parameter.name), "its schema is no usable JSON object and is ignored");
            }
            Ok(())
        }
    }
}

fn kinds(parameter: &Parameter, schema: Option<&Schema>) -> ParameterKinds {
    ParameterKinds::new(&parameter.r#type, parameter.required, schema.map(Schema::keywords))
}

/// The value that a text stands for; `None`: it counts as left out. What is not a type of JSON Schema is read
/// as plugins read it.
fn parse_text(
    parameter: &Parameter,
    schema: Option<&Schema>,
    text: &str,
) -> Result<Option<Value>, ValueError> {
    let fits = |value: &Value| match parameter.r#type.as_str() {
        "integer" => is_integer(value),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    match parameter.r#type.as_str() {
        "" | "string" => Ok(Some(Value::from(text))),
        word @ ("integer" | "number" | "boolean" | "array" | "object") => {
            let value = serde_json::from_str::<Value>(text).ok();
            let null = || kinds(parameter, schema).kinds.admits(Kinds::NULL);
            match value.filter(|value| fits(value) || value.is_null() && null()) {
                Some(value) => Ok(Some(value)),
                None => Err(ValueError::Type(spelling(word))),
            }
        }
        _ => {
            let taken = kinds(parameter, schema);
            let read = read_text(text, taken).ok_or_else(|| ValueError::of_kinds(taken.kinds))?;
            Ok(match read {
                Reading::String(text) => Some(Value::from(text)),
                Reading::Json(json) => serde_json::from_str(&json).ok(),
                Reading::LeftOut => None,
            })
        }
    }
}

/// What becomes of a JSON value.
enum Typed {
    /// It is passed on as it is.
    AsItIs,
    /// It is a string where none is taken, and stands for this JSON.
    Read(String),
    /// It is `null` where none is taken.
    LeftOut,
}

/// Checks a value that came as JSON.
fn check_typed(
    parameter: &Parameter,
    schema: Option<&Schema>,
    json: &str,
    patterns: &Patterns,
    budget: &mut Budget,
) -> Result<Typed, ValueError> {
    let taken = kinds(parameter, schema);
    if schema.is_none() && taken.kinds == Kinds::STRING && json.starts_with('"') {
        return Ok(Typed::AsItIs);
    }
    let wrong = || ValueError::of_kinds(taken.kinds);
    let parse = |json: &str| serde_json::from_str::<Value>(json).map_err(|_| wrong());
    let given = parse(json)?;
    let kind = Kinds::of_value(&given);
    let (value, typed) = if taken.kinds.admits(kind) {
        (given, Typed::AsItIs)
    } else {
        match &given {
            Value::Null if taken.is_optional => return Ok(Typed::LeftOut),
            Value::String(text) => match read_text(text, taken).ok_or_else(wrong)? {
                Reading::Json(read) => (parse(&read)?, Typed::Read(read)),
                Reading::LeftOut => return Ok(Typed::LeftOut),
                Reading::String(_) => return Err(wrong()),
            },
            _ => return Err(wrong()),
        }
    };
    check_schema(parameter, schema, &value, patterns, budget)?;
    Ok(typed)
}

#[cfg(test)]
mod tests;
