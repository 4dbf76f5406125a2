//! Why a value does not satisfy a schema.

use std::fmt;

use serde_json::Value;
use talon_sanitize::{prefix, truncate};

use crate::text::Quoted;

/// Enumerated values, or types, shown in a refusal.
pub(super) const MAX_SHOWN_VALUES: usize = 8;

/// How much of one enumerated value, of a type, of a pattern or of a name in the path is shown.
const MAX_SHOWN_BYTES: usize = 40;

/// A value does not satisfy a schema. The text says what the value must be, and where it is in the argument.
#[derive(Debug, thiserror::Error)]
#[error("{}{constraint}", Location(.path))]
pub(in crate::resolve) struct SchemaError {
    /// The names and indices that lead to the value, the innermost first.
    path: Vec<String>,
    constraint: Constraint,
}

impl SchemaError {
    /// The same error of a value that contains this one under `name`.
    pub(super) fn below(mut self, name: &str) -> Self {
        self.path.push(prefix(name, MAX_SHOWN_BYTES).to_owned());
        self
    }
}

impl From<Constraint> for SchemaError {
    fn from(constraint: Constraint) -> Self {
        Self { path: Vec::new(), constraint }
    }
}

/// What a schema demands of a value, shortened for display.
#[derive(Debug)]
pub(super) enum Constraint {
    /// One of these types.
    Type(Vec<String>),
    /// This very value.
    Const(String),
    /// One of these values, and of more that are not shown.
    Enum { shown: Vec<String>, has_more: bool },
    /// At least this many characters.
    MinLength(u64),
    /// At most this many characters.
    MaxLength(u64),
    /// A match of this pattern.
    Pattern(String),
    /// A field of this name.
    Required(String),
    /// A number in this relation (`at least`) to the bound.
    Range { relation: &'static str, bound: f64 },
}

impl Constraint {
    pub(super) fn types<'t>(types: impl Iterator<Item = &'t str>) -> Self {
        Self::Type(types.map(|name| prefix(name, MAX_SHOWN_BYTES).to_owned()).collect())
    }

    pub(super) fn equal_to(value: &Value) -> Self {
        Self::Const(shorten(value))
    }

    pub(super) fn one_of(choices: &[Value]) -> Self {
        let shown: Vec<String> = choices.iter().take(MAX_SHOWN_VALUES).map(shorten).collect();
        Self::Enum { has_more: choices.len() > shown.len(), shown }
    }

    pub(super) fn pattern(pattern: &str) -> Self {
        Self::Pattern(prefix(pattern, MAX_SHOWN_BYTES).to_owned())
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(types) => write!(f, "must be of type {}", types.join(" or ")),
            Self::Const(value) => write!(f, "must be {value}"),
            Self::Enum { shown, has_more } => {
                write!(f, "must be one of {}{}", shown.join(", "), if *has_more { ", …" } else { "" })
            }
            Self::MinLength(least) => write!(f, "must have at least {least} characters"),
            Self::MaxLength(most) => write!(f, "must have at most {most} characters"),
            Self::Pattern(pattern) => write!(f, "must match the pattern {}", Quoted(pattern)),
            Self::Required(name) => write!(f, "must have a field {}", Quoted(name)),
            Self::Range { relation, bound } => write!(f, "must be {relation} {bound}"),
        }
    }
}

/// Shows where a value is, in front of what it must be: `at items.0.name: `. Nothing for the argument itself.
struct Location<'e>(&'e [String]);

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().rev().enumerate() {
            write!(f, "{}{name}", if index == 0 { "at " } else { "." })?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str(": ") }
    }
}

fn shorten(value: &Value) -> String {
    truncate(&value.to_string(), MAX_SHOWN_BYTES, "…").into_owned()
}
