//! What the tests of several layers need.

use prost::Message as _;
use talon_proto::plugin::ToolResultResponse;
use talon_sanitize::{Sanitizer, Settings};

use crate::answer::{Answer, Outcome, RawAnswer};
use crate::call::{Call, Origin};

/// A call of the plugin `x` by a model.
pub(crate) fn call(id: &str) -> Call {
    Call::new(id, "x", "run", Origin::Model)
}

/// A plugin's well-formed answer.
pub(crate) fn raw(call_id: &str, content: &str) -> RawAnswer {
    let message =
        ToolResultResponse { call_id: call_id.to_owned(), content: content.to_owned(), ..Default::default() };
    RawAnswer(message.encode_to_vec().into())
}

pub(crate) fn answer(content: &str, error: &str, structured_content: &str) -> Answer {
    Answer {
        outcome: if error.is_empty() { Outcome::Ok } else { Outcome::ToolError },
        content: content.to_owned(),
        error: error.to_owned(),
        structured_content: structured_content.to_owned(),
    }
}

pub(crate) fn sanitizer() -> Sanitizer {
    Sanitizer::new(&Settings::default()).expect("there is no pattern to be wrong")
}
