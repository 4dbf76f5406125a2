//! The structured answer of an action that plays a role.

use serde_json::Value;
use talon_proto::host::{ExecuteResponse, Outcome};

/// The structured answer, or `null` if there is none.
///
/// # Errors
/// Why an answer does not count, for the log.
pub(crate) fn structured_answer(answer: &ExecuteResponse) -> Result<Value, String> {
    if answer.outcome() != Outcome::Ok || !answer.error.is_empty() {
        return Err(format!("{}: {}", answer.reason, answer.error));
    }
    if answer.input_request.is_some() {
        return Err("it asks a question, and a request has no answer".to_owned());
    }
    if answer.report.as_ref().is_some_and(|report| report.truncated) {
        return Err("its answer was cut at a limit".to_owned());
    }
    // Servers of protocols without structured answers write the JSON as text.
    let json = [&answer.structured_content, &answer.content].into_iter().find(|text| !text.trim().is_empty());
    Ok(json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default())
}
