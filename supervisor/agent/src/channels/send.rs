//! One call of a channel's action.

use std::time::Duration;

use serde_json::Value;
use talon_extensions::contract::{ChannelOutcome, ChannelReply, ChannelRequest};
use talon_extensions::{ChannelEntry, EntryKey, Role};
use talon_proto::host::{ExecuteResponse, Outcome};

use crate::hooks::{RoleCall, RoleHost};

/// How long the supervisor may take beyond the deadline until it says that the plugin passed it. As for hooks.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
/// How much of an error's text is logged.
const MAX_REASON_CHARS: usize = 500;

/// Makes a call that sends. Every failure may be tried again.
pub(super) async fn send(
    host: &dyn RoleHost,
    entry: &ChannelEntry,
    request: &ChannelRequest,
) -> ChannelOutcome {
    match call(host, entry, request).await {
        Ok(structured) => read(&structured, &request.text),
        Err(failed) => failed,
    }
}

/// What became of a text, by the structured answer.
pub(super) fn read(structured: &Value, text: &str) -> ChannelOutcome {
    ChannelReply::read(structured, text).unwrap_or_else(|error| failed(&error))
}

/// Makes a call, and returns its structured answer. Every failure may be tried again.
pub(super) async fn call(
    host: &dyn RoleHost,
    entry: &ChannelEntry,
    request: &ChannelRequest,
) -> Result<Value, ChannelOutcome> {
    let (plugin, action) = entry.action.split_once('.').unwrap_or((&entry.action, ""));
    let call = RoleCall {
        entry: EntryKey { role: Role::Channel, name: entry.name.clone() },
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        // The type has string keys only.
        arguments_json: serde_json::to_string(request).unwrap_or_default(),
        deadline: entry.deadline(),
        call_id: String::new(),
    };
    match tokio::time::timeout(entry.deadline() + DEADLINE_GRACE, host.call(&call)).await {
        Err(_) => Err(failed(&format!("it did not answer within {} ms", entry.deadline().as_millis()))),
        Ok(Err(error)) => Err(failed(&format!("the supervisor did not make its call: {error}"))),
        Ok(Ok(response)) => structured(&response),
    }
}

fn structured(response: &ExecuteResponse) -> Result<Value, ChannelOutcome> {
    if response.outcome() != Outcome::Ok || !response.error.is_empty() {
        let error = if response.error.is_empty() { &response.content } else { &response.error };
        return Err(failed(format!("{}: {error}", response.reason).trim_start_matches(": ")));
    }
    // Servers of protocols without structured answers write the JSON as text.
    let json =
        [&response.structured_content, &response.content].into_iter().find(|text| !text.trim().is_empty());
    Ok(json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default())
}

fn failed(reason: &str) -> ChannelOutcome {
    let line = talon_sanitize::Raw::from(reason).line();
    let reason = line.as_str().chars().take(MAX_REASON_CHARS).collect();
    ChannelOutcome::Retry { reason, after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_only_without_an_error() {
        let answer = |structured: &str, error: &str| ExecuteResponse {
            structured_content: structured.to_owned(),
            error: error.to_owned(),
            outcome: Outcome::Ok.into(),
            ..ExecuteResponse::default()
        };
        let judged = |answer: &ExecuteResponse, text| {
            structured(answer).map_or_else(|failed| failed, |structured| read(&structured, text))
        };
        assert_eq!(judged(&answer(r#"{"status":"delivered"}"#, ""), "hi"), ChannelOutcome::Sent(2));
        for wrong in [answer(r#"{"status":"delivered"}"#, "no"), answer("", ""), answer("[]", "")] {
            assert!(matches!(judged(&wrong, "hi"), ChannelOutcome::Retry { .. }), "{wrong:?}");
        }
    }
}
