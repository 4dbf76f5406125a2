//! One attempt: the call of an entry's action.

use std::time::Duration;

use serde_json::{Map, Value};
use talon_extensions::contract::{DeliveryStatus, NotificationReply, NotificationRequest};
use talon_extensions::template::{self, TemplateError};
use talon_extensions::{EntryKey, NotificationEntry, Role};
use talon_proto::host::{ExecuteResponse, Outcome};
use talon_store::Notification;

use super::payload::Payload;
use crate::hooks::{RoleCall, RoleHost};

/// How long the supervisor may take beyond the deadline until it says that the plugin passed it. As for hooks.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
/// How much of an error's text is stored.
const MAX_REASON_CHARS: usize = 500;

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The sink has it.
    Delivered,
    /// The sink does not want it.
    Refused(String),
    /// Neither.
    Failed {
        /// Why.
        reason: String,
        /// The least time until the next attempt.
        retry_after: Option<Duration>,
    },
}

/// Makes an attempt.
pub(super) async fn attempt(
    host: &dyn RoleHost,
    entry: &NotificationEntry,
    notification: &Notification,
) -> Attempt {
    let request = match Payload::read(&notification.payload) {
        Ok(payload) => payload.request(notification),
        Err(error) => return Attempt::Refused(error.to_string()),
    };
    let arguments = match arguments(entry, &request) {
        Ok(arguments) => arguments,
        // The configuration may be corrected.
        Err(error) => return failed(format!("its arguments cannot be made: {error}")),
    };
    let (plugin, action) = entry.action.split_once('.').unwrap_or((&entry.action, ""));
    let call = RoleCall {
        entry: EntryKey { role: Role::NotificationSink, name: entry.name().to_owned() },
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        // Maps with string keys serialize.
        arguments_json: serde_json::to_string(&arguments).unwrap_or_default(),
        deadline: entry.deadline(),
        call_id: String::new(),
    };
    match tokio::time::timeout(entry.deadline() + DEADLINE_GRACE, host.call(&call)).await {
        Err(_) => failed(format!("it did not answer within {} ms", entry.deadline().as_millis())),
        Ok(Err(error)) => failed(format!("the supervisor did not make its call: {error}")),
        Ok(Ok(response)) => judged(entry, &response),
    }
}

fn arguments(
    entry: &NotificationEntry,
    request: &NotificationRequest,
) -> Result<Map<String, Value>, TemplateError> {
    match (&entry.args, serde_json::to_value(request)) {
        (Some(args), _) => template::render(args, &request.variables_for(args)),
        (None, Ok(Value::Object(values))) => Ok(values),
        // The type is an object with string keys.
        (None, _) => Ok(Map::new()),
    }
}

fn judged(entry: &NotificationEntry, response: &ExecuteResponse) -> Attempt {
    if response.outcome() != Outcome::Ok || !response.error.is_empty() {
        let error = if response.error.is_empty() { &response.content } else { &response.error };
        return failed(format!("{}: {error}", response.reason).trim_start_matches(": ").to_owned());
    }
    if response.input_request.is_some() {
        return failed("it asks a question, and a notification has no answer".to_owned());
    }
    // Servers of protocols without structured answers write the JSON as text.
    let text =
        [&response.structured_content, &response.content].into_iter().find(|text| !text.trim().is_empty());
    let structured: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let reply = match NotificationReply::parse(&structured) {
        Ok(reply) => reply,
        // An action that knows nothing of the role has done what its arguments say.
        Err(_) if entry.args.is_some() => return Attempt::Delivered,
        Err(error) => return failed(error.to_string()),
    };
    let retry_after = reply.retry_after();
    let reason = cut(reply.reason.unwrap_or_else(|| "it gives no reason".to_owned()));
    match reply.status {
        DeliveryStatus::Delivered => Attempt::Delivered,
        DeliveryStatus::Refused => Attempt::Refused(reason),
        DeliveryStatus::Retry => Attempt::Failed { reason, retry_after },
    }
}

fn failed(reason: String) -> Attempt {
    Attempt::Failed { reason: cut(reason), retry_after: None }
}

/// One line without characters that the store does not take.
fn cut(reason: String) -> String {
    talon_sanitize::Raw::from(reason.as_str()).line().as_str().chars().take(MAX_REASON_CHARS).collect()
}
