//! A question of a server, within the limits of what a person is asked.

use serde_json::{Value, json};
use talon_arguments::form::{Form, FormError};
use talon_sdk::proto::InputResponse;

/// The longest text of a question, in bytes, as the supervisor takes it. A longer one is declined: cut, it may lack what
/// matters.
const MAX_TEXT_BYTES: usize = 4 << 10;

/// Why a question is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It wants the user to open an address.
    #[error("it wants the user to open an address, which is not supported")]
    Address,
    /// It is too long, or has no text.
    #[error("its text has {0} bytes, and may have 1 to {MAX_TEXT_BYTES}")]
    Text(usize),
    /// What it asks for is no form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The caller cannot ask.
    #[error("the caller cannot put a question to a user")]
    Caller,
    /// Several calls are under way, or none.
    #[error("{0} calls are under way, and the server does not say which of them it asks for")]
    Calls(usize),
    /// The call has asked already.
    #[error("the call has an open question already")]
    Open,
}

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// What is asked for, as JSON.
    pub(crate) schema: String,
    pub(crate) form: Form,
}

impl Question {
    /// Of the parameters of `elicitation/create`.
    ///
    /// # Errors
    /// [`Refusal`], if it is not for a person to answer here.
    pub(crate) fn of(params: &Value) -> Result<Self, Refusal> {
        if params.get("mode").is_some_and(|mode| mode != "form") {
            return Err(Refusal::Address);
        }
        let text = params.get("message").and_then(Value::as_str).unwrap_or_default();
        if !(1..=MAX_TEXT_BYTES).contains(&text.len()) {
            return Err(Refusal::Text(text.len()));
        }
        let schema = params.get("requestedSchema").map_or_else(|| "{}".to_owned(), Value::to_string);
        let form = Form::parse(&schema)?;
        Ok(Self { text: text.to_owned(), schema, form })
    }
}

/// A user's answer as MCP's result of `elicitation/create`.
pub(crate) fn result(response: &InputResponse) -> Value {
    match serde_json::from_str::<Value>(&response.content_json) {
        Ok(content) if response.action == "accept" => json!({ "action": "accept", "content": content }),
        _ if response.action == "decline" => json!({ "action": "decline" }),
        _ => json!({ "action": "cancel" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_short_text_and_a_form() {
        let form = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let question = Question::of(&json!({"message": "Which?", "requestedSchema": form})).unwrap();
        assert_eq!((question.text.as_str(), question.form.fields.len()), ("Which?", 1));
        let address =
            json!({"mode": "url", "message": "Log in.", "url": "https://example.org", "elicitationId": "1"});
        assert_eq!(Question::of(&address), Err(Refusal::Address));
        assert_eq!(Question::of(&json!({"requestedSchema": form})), Err(Refusal::Text(0)));
        assert_eq!(Question::of(&json!({"message": "x".repeat(5000)})), Err(Refusal::Text(5000)));
        let nested = json!({"properties": {"a": {"type": "object"}}});
        let refused = Question::of(&json!({"message": "?", "requestedSchema": nested}));
        assert!(matches!(refused, Err(Refusal::Form(_))), "{refused:?}");
    }

    #[test]
    fn what_is_not_accepted_has_no_content() {
        let of = |action: &str, content: &str| {
            let [action, content_json] = [action, content].map(str::to_owned);
            result(&InputResponse { id: "q".to_owned(), action, content_json })
        };
        assert_eq!(of("accept", r#"{"a":1}"#), json!({"action": "accept", "content": {"a": 1}}));
        assert_eq!(of("decline", ""), json!({"action": "decline"}));
        assert_eq!(of("cancel", ""), json!({"action": "cancel"}));
        assert_eq!(of("accept", "not JSON"), json!({"action": "cancel"}));
    }
}
