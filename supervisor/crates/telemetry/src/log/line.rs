//! One event with the fields of its spans, as values for all formats.

use std::fmt::{self, Write};
use std::time::SystemTime;

use serde_json::Value;
use tracing::Level;
use tracing::field::{Field, Visit};

/// The longest text of a line, in bytes: more than a plugin may log in one line by default, and small enough
/// that no line fills the queue. A longer text is cut, with a `…`.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// The most fields of a line: several times what our lines have. More are left out, and `fields_left_out`
/// counts them.
const MAX_FIELDS: usize = 64;
/// The approximate size of a field in memory, without its text.
const FIELD_BYTES: usize = 64;

/// The field with the number of left out fields.
const OMITTED_FIELD: &str = "fields_left_out";

/// One line of the log.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) at: SystemTime,
    pub(crate) level: Level,
    pub(crate) target: String,
    pub(crate) message: String,
    pub(crate) fields: Fields,
}

impl Line {
    /// Its approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.message.len() + self.target.len() + self.fields.bytes()
    }

    /// A line of the log about itself.
    pub(crate) fn internal(level: Level, message: String) -> Self {
        let target = "talon_telemetry".to_owned();
        Self { at: SystemTime::now(), level, target, message, fields: Fields::default() }
    }
}

/// Fields by name, in the order in which they came. The last value of a name wins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    by_name: Vec<(&'static str, Value)>,
    omitted: u64,
}

impl Fields {
    /// No fields yet, with capacity for this number of them, up to the limit of a line.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { by_name: Vec::with_capacity(count.min(MAX_FIELDS)), omitted: 0 }
    }

    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        let full = self.by_name.len() >= MAX_FIELDS;
        match self.by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None if full => self.omitted += 1,
            None => self.by_name.push((name, value)),
        }
    }

    /// Adds the fields of an inner span.
    pub(crate) fn extend(&mut self, inner: &Self) {
        for (name, value) in &inner.by_name {
            self.set(name, value.clone());
        }
        self.omitted += inner.omitted;
    }

    /// Adds later fields.
    pub(crate) fn append(&mut self, later: Self) {
        for (name, value) in later.by_name {
            self.set(name, value);
        }
        self.omitted += later.omitted;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let left_out = (self.omitted > 0).then(|| (OMITTED_FIELD, Value::from(self.omitted)));
        self.by_name.iter().cloned().chain(left_out)
    }

    fn bytes(&self) -> usize {
        let text = |value: &Value| value.as_str().map_or(0, str::len);
        self.by_name.iter().map(|(name, value)| FIELD_BYTES + name.len() + text(value)).sum()
    }
}

/// Collects an event's fields, its message, and the target of records from the `log` crate.
#[derive(Default)]
pub(crate) struct Visitor {
    pub(crate) fields: Fields,
    pub(crate) message: String,
    /// The original target of a record from the `log` crate: otherwise all of them have the same one.
    pub(crate) target: Option<String>,
}

impl Visitor {
    fn text(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            "log.target" => self.target = Some(text),
            // Module, file and line, which other lines do not have either.
            name if name.starts_with("log.") => {}
            name => self.fields.set(name, text.into()),
        }
    }

    fn value(&mut self, field: &Field, value: impl Into<Value>) {
        if !field.name().starts_with("log.") {
            self.fields.set(field.name(), value.into());
        }
    }
}

impl Visit for Visitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = BoundedText::default();
        // The only error is that the text is full.
        let _ = write!(text, "{value:?}");
        self.text(field, text.0);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let mut text = BoundedText::default();
        let _ = text.write_str(value);
        self.text(field, text.0);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.value(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field, value);
    }
}

/// A text that stops growing at its limit, so that a huge value is never built in full.
#[derive(Default)]
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = MAX_TEXT_BYTES.saturating_sub(self.0.len());
        if piece.len() <= room {
            self.0.push_str(piece);
            return Ok(());
        }
        self.0.push_str(&piece[..piece.floor_char_boundary(room)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
