//! Checks values against a JSON Schema.
//!
//! References to other documents are not fetched, and patterns run on an engine without backtracking, since
//! both the schema and the value may be hostile.

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use talon_sanitize::truncate;

/// Larger schemas are refused. A whole API's types fit.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// A schema with a larger compiled pattern is rejected.
const MAX_PROGRAM_BYTES: usize = 256 * 1024;
/// The most mismatches reported for one answer. More do not help the model, and cost tokens.
const MAX_MISMATCHES: usize = 8;
/// The longest message and path that is shown: the validator quotes the value, and the path consists of its
/// keys.
const MAX_MESSAGE_BYTES: usize = 200;

/// A schema, compiled.
#[derive(Debug)]
pub struct Schema {
    text: Value,
    validator: Validator,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too large.
    #[error("the JSON Schema has {bytes} bytes and may have {MAX_SCHEMA_BYTES}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is no schema, refers to another document, or has a pattern that is not linear.
    #[error("this is no usable JSON Schema: {0}")]
    Unusable(String),
}

/// One place where a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where in the value, as a JSON pointer; empty for the root.
    pub at: String,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => f.write_str(&self.what),
            at => write!(f, "at {at}: {}", self.what),
        }
    }
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// [`SchemaError`]
    pub fn new(schema: Value) -> Result<Self, SchemaError> {
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLarge { bytes });
        }
        let patterns = PatternOptions::regex().size_limit(MAX_PROGRAM_BYTES);
        let validator = jsonschema::options()
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| SchemaError::Unusable(shown(&error.to_string())))?;
        Ok(Self { text: schema, validator })
    }

    /// The schema itself, for providers that can enforce one.
    #[must_use]
    pub fn text(&self) -> &Value {
        &self.text
    }

    /// Whether a value fits.
    ///
    /// # Errors
    /// The first places where it does not.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Mismatch>> {
        let mismatches: Vec<Mismatch> = self
            .validator
            .iter_errors(value)
            .take(MAX_MISMATCHES)
            .map(|error| Mismatch {
                at: shown(&error.instance_path().to_string()),
                what: shown(&error.to_string()),
            })
            .collect();
        if mismatches.is_empty() { Ok(()) } else { Err(mismatches) }
    }
}

/// A message of the validator, on one line.
fn shown(message: &str) -> String {
    truncate(message, MAX_MESSAGE_BYTES, "…").replace(char::is_control, " ")
}
