//! What a client's tool answered, as models see it: neutralized, and in the envelope of results.

use std::sync::Arc;

use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings, Sanitizer};

/// The source that the envelope names. No plugin of the operator's is meant by it.
const SOURCE: &str = "client";
/// The longest result. 1 MiB: as large as a request may be, so that none is cut here.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// The block of a result.
pub(crate) fn client_result(call_id: &str, text: &str, sanitizer: &Arc<Sanitizer>) -> String {
    let settings = GuardSettings {
        envelope: EnvelopeMode::Quoted,
        max_response_bytes: MAX_RESULT_BYTES,
        max_structured_bytes: MAX_RESULT_BYTES,
        ..GuardSettings::default()
    };
    let guard = Guard::with_sanitizer(Sanitizer::clone(sanitizer), settings);
    let answer = Answer::from_tool(text.to_owned());
    guard.answer("", SOURCE, call_id, answer).into_parts().block.into_string()
}
