//! Whether what a model says in the end is an answer.
//!
//! Without a schema any text is one, except none. With a schema ([`Schema`]) it has to be JSON that fits; models like to put words or
//! a fence around it, so the first JSON in the text that fits counts. What does not fit goes back with what is wrong with it
//! ([`AnswerError::feedback`]), as often as [`crate::budget::Budgets::structured_retries`] says.

use serde_json::Value;
use talon_llm::model::{Answer, Finish};

use crate::loop_context::Verdict;

mod error;
mod extract;
mod schema;

pub use error::AnswerError;
pub(crate) use error::quoted;
pub use schema::{Mismatch, Schema, SchemaError};

/// An answer that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalAnswer {
    /// What the model said, or the JSON alone if there is a schema.
    pub text: String,
    /// The JSON, if there is a schema.
    pub value: Option<Value>,
    /// The model ran into its limit of tokens: the text's end is missing.
    pub cut: bool,
}

/// Checks an answer that calls nothing.
#[must_use]
pub fn check(answer: &Answer, schema: Option<&Schema>) -> Verdict {
    match checked(answer, schema) {
        Ok(answer) => Verdict::Accepted(answer),
        Err(error) => Verdict::Invalid(error),
    }
}

fn checked(answer: &Answer, schema: Option<&Schema>) -> Result<FinalAnswer, AnswerError> {
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
        // Half of a JSON has no errors of its own that are worth telling.
        _ if cut => AnswerError::CutOff,
        Some(mismatches) => AnswerError::Mismatch(mismatches),
        None => AnswerError::NoJson,
    })
}

#[cfg(test)]
mod tests;
