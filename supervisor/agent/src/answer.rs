//! Whether the model's last message is a valid answer.
//!
//! Without a schema, any text but an empty one is. With a schema ([`Schema`]), it has to be JSON that fits.
//! Models like to add words or a fence, so the first fitting JSON in the text counts. An answer that does not
//! fit goes back to the model with its mismatches ([`AnswerError::feedback`]), as often as
//! [`crate::budget::Budgets::structured_retries`] allows.

use serde_json::Value;
use talon_llm::model::{Answer, Finish};

mod error;
mod extract;
mod schema;

pub use error::AnswerError;
pub(crate) use error::quoted;
pub use schema::{Mismatch, Schema, SchemaError};

/// An answer that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalAnswer {
    /// The text, or the JSON alone if there is a schema.
    pub text: String,
    /// The JSON, if there is a schema.
    pub value: Option<Value>,
    /// The model reached its token limit: the end of the text is missing.
    pub cut: bool,
}

/// The result of checking an answer without calls.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerVerdict {
    /// It is valid.
    Accepted(FinalAnswer),
    /// It is not valid.
    Invalid(AnswerError),
}

/// Checks an answer without calls.
#[must_use]
pub fn check(answer: &Answer, schema: Option<&Schema>) -> AnswerVerdict {
    match validate(answer, schema) {
        Ok(answer) => AnswerVerdict::Accepted(answer),
        Err(error) => AnswerVerdict::Invalid(error),
    }
}

fn validate(answer: &Answer, schema: Option<&Schema>) -> Result<FinalAnswer, AnswerError> {
    let text = answer.text.trim();
    let cut = answer.finish == Finish::Length;
    if text.is_empty() {
        return Err(match answer.finish {
            Finish::Filtered => AnswerError::Withheld,
            Finish::Length => AnswerError::CutOff,
            Finish::Stop | Finish::ToolCalls => AnswerError::Empty,
        });
    }
    let Some(schema) = schema else {
        return Ok(FinalAnswer { text: text.to_owned(), value: None, cut });
    };
    let mut first = None;
    for value in extract::values(text) {
        match schema.check(&value) {
            Ok(()) => return Ok(FinalAnswer { text: value.to_string(), value: Some(value), cut: false }),
            Err(mismatches) => first.get_or_insert(mismatches),
        };
    }
    Err(match first {
        // The mismatches of a truncated JSON are not worth reporting.
        _ if cut => AnswerError::CutOff,
        Some(mismatches) => AnswerError::Mismatch(mismatches),
        None => AnswerError::NoJson,
    })
}

#[cfg(test)]
mod tests;
