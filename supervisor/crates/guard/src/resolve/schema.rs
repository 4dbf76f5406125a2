//! A small, bounded checker for the JSON Schema fragments that plugins attach to parameters.
//!
//! The keywords it knows are listed in [`resolve`](super#arguments). Both sides are untrusted, so everything
//! has a limit: the size of the schema, the depth, the number of steps over one call, the size of a pattern
//! and of the text it is matched against. What lies beyond a limit counts as valid.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

mod error;

pub(super) use error::SchemaError;
use error::{Constraint, MAX_SHOWN_VALUES};

/// Larger schema texts are ignored. Generated schemas of one parameter have a few hundred bytes.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Deeper values are not checked. Twice what hand-written arguments reach.
const MAX_DEPTH: usize = 32;

/// Values compared or visited for one call: a few milliseconds of work.
const MAX_STEPS: usize = 50_000;

/// Longer patterns are ignored; those of real schemas fit in one line.
const MAX_PATTERN_BYTES: usize = 1024;

/// Patterns whose program is larger are ignored. Together with [`MAX_MATCHED_BYTES`] it bounds the product
/// that a linear-time match costs.
const MAX_PROGRAM_BYTES: usize = 64 * 1024;

/// Text matched against patterns for one call; the rest is not matched.
const MAX_MATCHED_BYTES: usize = 64 * 1024;

/// Compiled patterns cached by one layer; when full, the cache is cleared.
const MAX_PATTERNS: usize = 128;

/// The work that is left for one call.
#[derive(Debug)]
pub(super) struct Budget {
    steps: usize,
    matched_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { steps: MAX_STEPS, matched_bytes: MAX_MATCHED_BYTES }
    }
}

impl Budget {
    fn step(&mut self) -> bool {
        let left = self.steps > 0;
        self.steps = self.steps.saturating_sub(1);
        left
    }

    fn match_bytes(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.matched_bytes;
        if fits {
            self.matched_bytes -= bytes;
        }
        fits
    }
}

/// Patterns compiled so far, by text; `None` for unusable ones. Compiling is by far the most expensive part
/// of a check, and the same few patterns come with every call.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<HashMap<String, Option<Arc<Regex>>>>);

impl Patterns {
    fn get(&self, pattern: &str) -> Option<Arc<Regex>> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return None;
        }
        let mut known = self.0.lock();
        if let Some(found) = known.get(pattern) {
            return found.clone();
        }
        let compiled = RegexBuilder::new(pattern).size_limit(MAX_PROGRAM_BYTES).build().ok().map(Arc::new);
        if known.len() >= MAX_PATTERNS {
            known.clear();
        }
        known.insert(pattern.to_owned(), compiled.clone());
        compiled
    }
}

/// A schema fragment.
#[derive(Debug, Clone)]
pub(super) struct Schema(Map<String, Value>);

#[cfg(test)]
thread_local! {
    static PARSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many texts this thread has parsed so far.
#[cfg(test)]
pub(super) fn parsed_on_this_thread() -> usize {
    PARSED.get()
}

impl Schema {
    /// `None` if the text is not a JSON object, or too large.
    pub(super) fn parse(text: &str) -> Option<Self> {
        #[cfg(test)]
        PARSED.set(PARSED.get() + 1);
        if text.is_empty() || text.len() > MAX_SCHEMA_BYTES {
            return None;
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(keywords)) => Some(Self(keywords)),
            _ => None,
        }
    }

    /// Its keywords.
    pub(super) fn keywords(&self) -> &Map<String, Value> {
        &self.0
    }

    /// An upper estimate of its memory.
    pub(super) fn bytes(&self) -> usize {
        map_heap_bytes(&self.0)
    }

    /// Checks a value.
    pub(super) fn check(
        &self,
        value: &Value,
        patterns: &Patterns,
        budget: &mut Budget,
    ) -> Result<(), SchemaError> {
        Check { patterns, budget }.value(&self.0, value, 0)
    }
}

struct Check<'c> {
    patterns: &'c Patterns,
    budget: &'c mut Budget,
}

impl Check<'_> {
    fn value(&mut self, schema: &Map<String, Value>, value: &Value, depth: usize) -> Result<(), SchemaError> {
        if depth > MAX_DEPTH || !self.budget.step() {
            return Ok(());
        }
        check_type(schema, value)?;
        self.choice(schema, value)?;
        match value {
            Value::Number(number) => check_range(schema, number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => self.text(schema, text),
            Value::Array(items) => self.items(schema, items, depth),
            Value::Object(fields) => self.fields(schema, fields, depth),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn choice(&mut self, schema: &Map<String, Value>, value: &Value) -> Result<(), SchemaError> {
        if let Some(only) = schema.get("const")
            && !json_equal(only, value)
        {
            return Err(Constraint::equal_to(only).into());
        }
        let Some(Value::Array(choices)) = schema.get("enum") else { return Ok(()) };
        for choice in choices {
            if !self.budget.step() || json_equal(choice, value) {
                return Ok(());
            }
        }
        Err(Constraint::one_of(choices).into())
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str) -> Result<(), SchemaError> {
        // Counting is linear, and the text is bounded by the size limit of the arguments.
        let length = || text.chars().count() as u64;
        if let Some(least) = schema.get("minLength").and_then(Value::as_u64)
            && length() < least
        {
            return Err(Constraint::MinLength(least).into());
        }
        if let Some(most) = schema.get("maxLength").and_then(Value::as_u64)
            && length() > most
        {
            return Err(Constraint::MaxLength(most).into());
        }
        if let Some(Value::String(pattern)) = schema.get("pattern")
            && let Some(regex) = self.patterns.get(pattern)
            && self.budget.match_bytes(text.len())
            && !regex.is_match(text)
        {
            return Err(Constraint::pattern(pattern).into());
        }
        Ok(())
    }

    fn items(
        &mut self,
        schema: &Map<String, Value>,
        items: &[Value],
        depth: usize,
    ) -> Result<(), SchemaError> {
        let Some(Value::Object(each)) = schema.get("items") else { return Ok(()) };
        for (i, item) in items.iter().enumerate() {
            self.value(each, item, depth + 1).map_err(|error| error.below(&i.to_string()))?;
        }
        Ok(())
    }

    fn fields(
        &mut self,
        schema: &Map<String, Value>,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), SchemaError> {
        if let Some(Value::Array(required)) = schema.get("required") {
            for name in required.iter().filter_map(Value::as_str) {
                if self.budget.step() && !fields.contains_key(name) {
                    return Err(Constraint::Required(name.to_owned()).into());
                }
            }
        }
        let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
        for (name, field) in fields {
            if let Some(Value::Object(of_field)) = properties.get(name) {
                self.value(of_field, field, depth + 1).map_err(|error| error.below(name))?;
            }
        }
        Ok(())
    }
}

fn check_type(schema: &Map<String, Value>, value: &Value) -> Result<(), SchemaError> {
    let fits = |word: &str| match word {
        "string" => value.is_string(),
        "integer" => is_integer(value),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A type that JSON Schema does not define is ignored.
        _ => true,
    };
    match schema.get("type") {
        Some(Value::String(word)) if !fits(word) => {
            Err(Constraint::types(std::iter::once(word.as_str())).into())
        }
        Some(Value::Array(words)) => {
            let mut words = words.iter().filter_map(Value::as_str).take(MAX_SHOWN_VALUES).peekable();
            if words.peek().is_none() || words.clone().any(fits) {
                return Ok(());
            }
            Err(Constraint::types(words).into())
        }
        _ => Ok(()),
    }
}

/// JSON Schema counts 5.0 among the integers.
pub(super) fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
}

fn check_range(schema: &Map<String, Value>, number: f64) -> Result<(), SchemaError> {
    let limit = |keyword| schema.get(keyword).and_then(Value::as_f64);
    let broken = |relation, bound| Err(Constraint::Range { relation, bound }.into());
    match (limit("minimum"), limit("exclusiveMinimum"), limit("maximum"), limit("exclusiveMaximum")) {
        (Some(least), ..) if number < least => broken("at least", least),
        (_, Some(below), ..) if number <= below => broken("greater than", below),
        (_, _, Some(most), _) if number > most => broken("at most", most),
        (.., Some(above)) if number >= above => broken("less than", above),
        _ => Ok(()),
    }
}

/// The heap memory of the value. The parser bounds its depth.
fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.capacity(),
        Value::Array(items) => {
            items.capacity() * size_of::<Value>() + items.iter().map(heap_bytes).sum::<usize>()
        }
        Value::Object(fields) => map_heap_bytes(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn map_heap_bytes(fields: &Map<String, Value>) -> usize {
    // A field's hash, and its slot in the hash table.
    const OF_A_TABLE: usize = 4 * size_of::<u64>();
    // Tables double, and the smallest has four slots.
    let places = (2 * fields.len()).max(4);
    let texts: usize = fields.iter().map(|(name, value)| name.capacity() + heap_bytes(value)).sum();
    places * (size_of::<(String, Value)>() + OF_A_TABLE) + texts
}

/// Equality as JSON Schema defines it: 1 and 1.0 are the same number.
fn json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
