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
    /// The text; if there is a schema, the JSON alone, byte for byte as the model wrote it.
    pub text: String,
    /// The JSON, if there is a schema.
    pub value: Option<Value>,
}

/// The result of checking an answer without calls.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerVerdict {
    /// It is valid.
    Accepted(FinalAnswer),
    /// It is not valid.
    Invalid(AnswerError),
}

/// Checks an answer without calls. One that was cut, withheld or refused is none, whatever its text.
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
    match (answer.finish, &answer.cut_call) {
        (Finish::Filtered, _) => return Err(AnswerError::Withheld),
        (Finish::Refused, _) => return Err(AnswerError::Refused),
        (_, Some(tool)) => return Err(AnswerError::CallCutOff { tool: tool.clone() }),
        (Finish::Length, None) if text.is_empty() => return Err(AnswerError::CutOff),
        _ if text.is_empty() => return Err(AnswerError::Empty),
        _ => {}
    }
    let Some(schema) = schema else {
        // It was continued as often as it may be.
        if cut {
            return Err(AnswerError::TooLong);
        }
        return Ok(FinalAnswer { text: text.to_owned(), value: None });
    };
    let mut first = None;
    for (piece, value) in extract::values(text) {
        match schema.check(&value) {
            Ok(()) => return Ok(FinalAnswer { text: piece.to_owned(), value: Some(value) }),
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
