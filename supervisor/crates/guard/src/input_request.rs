//! What a plugin asks its caller's user for, before a person sees it.

use talon_arguments::Arguments;
use talon_arguments::form::{Form, FormError, MAX_ANSWER_BYTES};
use talon_proto::plugin::{InputRequest, InputResponse};

/// The longest question, in bytes: what a person reads before an answer. A longer one is refused, because one that
/// is cut may leave out what matters.
pub const MAX_QUESTION_BYTES: usize = 4 << 10;
/// The longest id, as of calls.
pub const MAX_ID_BYTES: usize = 128;

/// A question that cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum InputRequestError {
    /// The id is empty, too long, or has characters that ids do not have.
    #[error("its id is not 1 to {MAX_ID_BYTES} characters of [A-Za-z0-9_.:-]")]
    Id,
    /// There is no question, or it is too long.
    #[error("the text of the question has {0} bytes, and may have 1 to {MAX_QUESTION_BYTES}")]
    Question(usize),
    /// What is asked for is no form.
    #[error(transparent)]
    Form(#[from] FormError),
}

/// An answer that cannot be given to a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputResponseError {
    /// The id is none.
    #[error("input_response: the id is not that of an input_request")]
    Id,
    /// The action is none of the three.
    #[error("input_response: the action has to be accept, decline or cancel")]
    Action,
    /// The content is not what goes with the action.
    #[error(
        "input_response: content_json has to be one JSON object of at most {MAX_ANSWER_BYTES} bytes to accept, and empty \
         otherwise"
    )]
    Content,
}

/// Whether a text may be the id of a question.
fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(plain)
}

/// Checks a question, and the text that comes with it.
pub(crate) fn check(request: &InputRequest, question: &str) -> Result<(), InputRequestError> {
    if !is_id(&request.id) {
        return Err(InputRequestError::Id);
    }
    if !(1..=MAX_QUESTION_BYTES).contains(&question.len()) {
        return Err(InputRequestError::Question(question.len()));
    }
    Form::parse(&request.schema)?;
    Ok(())
}

/// Checks an answer. Whether it fits the question is for the plugin to say, which knows the question.
///
/// # Errors
/// [`InputResponseError`]
pub fn check_response(response: &InputResponse) -> Result<(), InputResponseError> {
    let InputResponse { id, action, content_json } = response;
    if !is_id(id) {
        return Err(InputResponseError::Id);
    }
    match action.as_str() {
        "accept" if content_json.len() <= MAX_ANSWER_BYTES && Arguments::parse(content_json).is_ok() => {
            Ok(())
        }
        "decline" | "cancel" if content_json.is_empty() => Ok(()),
        "accept" | "decline" | "cancel" => Err(InputResponseError::Content),
        _ => Err(InputResponseError::Action),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_accepts_with_an_object_or_says_no() {
        let answer = |id: &str, action: &str, content_json: &str| {
            let [id, action, content_json] = [id, action, content_json].map(str::to_owned);
            check_response(&InputResponse { id, action, content_json })
        };
        for (action, content) in [("accept", "{}"), ("decline", ""), ("cancel", "")] {
            assert_eq!(answer("q.1", action, content), Ok(()));
        }
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ANSWER_BYTES));
        for (id, action, content, error) in [
            ("", "accept", "{}", InputResponseError::Id),
            ("a b", "accept", "{}", InputResponseError::Id),
            ("q", "", "", InputResponseError::Action),
            ("q", "yes", "{}", InputResponseError::Action),
            ("q", "accept", "", InputResponseError::Content),
            ("q", "accept", "[]", InputResponseError::Content),
            ("q", "accept", &large, InputResponseError::Content),
            ("q", "decline", "{}", InputResponseError::Content),
        ] {
            assert_eq!(answer(id, action, content), Err(error), "{id} {action}");
        }
    }

    #[test]
    fn a_question_has_an_id_a_text_and_a_form() {
        let checked = |id: &str, schema: &str, question: &str| {
            check(&InputRequest { id: id.to_owned(), schema: schema.to_owned() }, question)
        };
        assert!(checked("q", "{}", "Really?").is_ok());
        assert!(matches!(checked("", "{}", "?"), Err(InputRequestError::Id)));
        assert!(matches!(checked(&"q".repeat(MAX_ID_BYTES + 1), "{}", "?"), Err(InputRequestError::Id)));
        assert!(matches!(checked("q", "{}", ""), Err(InputRequestError::Question(0))));
        let long = "?".repeat(MAX_QUESTION_BYTES + 1);
        assert!(matches!(checked("q", "{}", &long), Err(InputRequestError::Question(4097))));
        assert!(matches!(checked("q", "[]", "?"), Err(InputRequestError::Form(_))));
    }
}
