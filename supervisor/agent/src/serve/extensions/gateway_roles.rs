//! What would come of the answer of a notification sink, an auth provider or an API route.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use talon_extensions::contract::{
    ApiReply, AuthError, AuthReply, BodyEncoding, DeliveryStatus, NotificationReply, NotificationRequest,
};
use talon_extensions::template;
use talon_extensions::{AuthEntry, Entry, Extensions, Role};
use talon_proto::agent::TestExtensionResponse;
use talon_proto::host::{ExecuteResponse, Outcome};
use tokio::time::Instant;

use crate::hooks::{RoleCall, RoleHost};

/// How long the supervisor may take beyond the deadline until it says that the plugin passed it.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
/// How much of an answer's text is shown.
const MAX_SHOWN_CHARS: usize = 16 << 10;

/// What would come of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Effect {
    /// A word.
    verdict: String,
    message: String,
    reason: String,
    metadata: BTreeMap<String, String>,
    /// A sentence.
    effect: String,
}

pub(super) async fn test(
    host: &dyn RoleHost,
    extensions: &Extensions,
    entry: &Entry<'_>,
    asked: Value,
) -> Result<TestExtensionResponse, String> {
    if entry.role == Role::ScheduledTask {
        return Err(format!("a job is tried by running it: `talon schedule run {}`", entry.name));
    }
    let arguments = arguments(entry, &asked)?;
    // Maps with string keys serialize.
    let arguments_json = serde_json::to_string(&arguments).unwrap_or_default();
    let (plugin, action) = entry.target();
    let call = RoleCall {
        entry: entry.key(),
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        arguments_json: arguments_json.clone(),
        deadline: deadline(extensions, entry),
        call_id: String::new(),
    };
    let began = Instant::now();
    let answer = match tokio::time::timeout(call.deadline + DEADLINE_GRACE, host.call(&call)).await {
        Err(_) => Err(format!("it did not answer within {} ms", call.deadline.as_millis())),
        Ok(Err(error)) => Err(format!("the supervisor did not make its call: {error}")),
        Ok(Ok(response)) => answered(response),
    };
    let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let Effect { verdict, message, reason, metadata, effect } = effect(extensions, entry, answer);
    Ok(TestExtensionResponse {
        entry: entry.name.to_owned(),
        arguments_json: without_credential(entry.role, &asked, arguments_json),
        verdict,
        message: message.chars().take(MAX_SHOWN_CHARS).collect(),
        metadata: metadata.into_iter().collect(),
        reason,
        effect,
        duration_us,
    })
}

fn arguments(entry: &Entry<'_>, asked: &Value) -> Result<Map<String, Value>, String> {
    let Some(args) = entry.args else {
        return Ok(asked.as_object().cloned().unwrap_or_default());
    };
    let variables = match entry.role {
        Role::NotificationSink => serde_json::from_value::<NotificationRequest>(asked.clone())
            .map_err(|error| error.to_string())?
            .variables_for(args),
        _ => asked.clone(),
    };
    template::render(args, &variables).map_err(|error| format!("its arguments cannot be made: {error}"))
}

fn deadline(extensions: &Extensions, entry: &Entry<'_>) -> Duration {
    const OTHERWISE: Duration = Duration::from_secs(30);
    let index = entry.index;
    let found = match entry.role {
        Role::NotificationSink => extensions.notifications.get(index).map(|entry| entry.deadline()),
        Role::AuthProvider => extensions.auth.get(index).map(|entry| entry.deadline()),
        Role::ApiRoute => extensions.routes.get(index).map(|entry| entry.deadline()),
        Role::Filter
        | Role::RequestHook
        | Role::ResponseHook
        | Role::ScheduledTask
        | Role::StorageBackend => None,
        Role::Channel => extensions.channels.get(index).map(|entry| entry.deadline()),
    };
    found.unwrap_or(OTHERWISE)
}

/// The text and the structured answer.
fn answered(response: ExecuteResponse) -> Result<(String, Option<Value>), String> {
    if response.outcome() != Outcome::Ok {
        return Err(format!("it failed ({}): {}", response.reason, response.error));
    }
    if response.input_request.is_some() {
        return Err("it asks a question, and nobody is there to answer".to_owned());
    }
    if response.report.as_ref().is_some_and(|report| report.truncated) {
        return Err("its answer is larger than 1 MiB, or was cut at a limit of its plugin".to_owned());
    }
    // Servers of protocols without structured answers write the JSON as text.
    let texts = [&response.structured_content, &response.content];
    let json = texts.into_iter().find(|text| !text.trim().is_empty());
    let structured = json.and_then(|text| serde_json::from_str(text).ok());
    Ok((response.content, structured))
}

fn effect(
    extensions: &Extensions,
    entry: &Entry<'_>,
    answer: Result<(String, Option<Value>), String>,
) -> Effect {
    let by_template = entry.args.is_some();
    match (entry.role, extensions.auth.get(entry.index)) {
        (Role::NotificationSink, _) => delivery(by_template, answer),
        (Role::Channel, _) => match delivery(by_template, answer) {
            done if done.verdict == "delivered" => Effect { effect: "the channel did it".to_owned(), ..done },
            other => other,
        },
        (Role::AuthProvider, Some(auth)) => authentication(auth, answer),
        _ => reply(by_template, answer),
    }
}

fn failed(reason: String, effect: &str) -> Effect {
    Effect { verdict: "failed".to_owned(), reason, effect: effect.to_owned(), ..Effect::default() }
}

fn delivery(by_template: bool, answer: Result<(String, Option<Value>), String>) -> Effect {
    const AGAIN: &str = "it would be tried again, until give_up_after or retries ends it";
    let structured = match answer {
        Err(error) => return failed(error, AGAIN),
        Ok((_, structured)) => structured.unwrap_or_default(),
    };
    let reply = match NotificationReply::parse(&structured) {
        Ok(reply) => reply,
        Err(_) if by_template => {
            let effect = "the event is delivered: the action answered without an error".to_owned();
            return Effect { verdict: "delivered".to_owned(), effect, ..Effect::default() };
        }
        Err(error) => return failed(error.to_string(), AGAIN),
    };
    let (verdict, effect) = match reply.status {
        DeliveryStatus::Delivered => ("delivered", "the event is delivered".to_owned()),
        DeliveryStatus::Refused => ("refused", "it would not be tried again".to_owned()),
        DeliveryStatus::Retry => match reply.retry_after() {
            None => ("retry", AGAIN.to_owned()),
            Some(wait) => ("retry", format!("{AGAIN}, after {} s at the earliest", wait.as_secs())),
        },
    };
    let reason = reply.reason.unwrap_or_default();
    Effect { verdict: verdict.to_owned(), reason, effect, ..Effect::default() }
}

fn authentication(entry: &AuthEntry, answer: Result<(String, Option<Value>), String>) -> Effect {
    const REFUSED: &str = "the request would be refused";
    let structured = match answer {
        Err(error) => return failed(error, REFUSED),
        Ok((_, structured)) => structured.unwrap_or_default(),
    };
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    let judged = AuthReply::parse(&structured)
        .and_then(|reply| reply.judge(entry, i64::try_from(now).unwrap_or(i64::MAX)));
    match judged {
        Ok(subject) => {
            let scopes: Vec<&str> = subject.scopes.iter().map(|scope| scope.as_str()).collect();
            let effect = format!(
                "the request is let in as gw:{}/{} with {}",
                entry.name(),
                subject.subject,
                scopes.join(", ")
            );
            Effect {
                verdict: "accepted".to_owned(),
                message: subject.display_name,
                effect,
                ..Effect::default()
            }
        }
        Err(error @ AuthError::Shape(_)) => failed(error.to_string(), REFUSED),
        Err(error) => Effect {
            verdict: "rejected".to_owned(),
            reason: error.to_string(),
            effect: REFUSED.to_owned(),
            ..Effect::default()
        },
    }
}

fn reply(by_template: bool, answer: Result<(String, Option<Value>), String>) -> Effect {
    const BAD_GATEWAY: &str = "the request would be answered with 502 and an id";
    let (text, structured) = match answer {
        Err(error) => return failed(error, BAD_GATEWAY),
        Ok((text, structured)) => (text, structured.unwrap_or_default()),
    };
    match ApiReply::parse(&structured) {
        Ok(reply) => {
            let message = match reply.body_encoding {
                BodyEncoding::Text => reply.body,
                BodyEncoding::Base64 => format!("{} characters of base64", reply.body.len()),
            };
            Effect {
                verdict: reply.status.to_string(),
                message,
                metadata: reply.headers,
                effect: format!("the request is answered with {}", reply.status),
                ..Effect::default()
            }
        }
        Err(_) if by_template => Effect {
            verdict: "200".to_owned(),
            message: if structured.is_null() { text } else { structured.to_string() },
            effect: "the request is answered with 200".to_owned(),
            ..Effect::default()
        },
        Err(error) => failed(error.to_string(), BAD_GATEWAY),
    }
}

/// The arguments as they are shown: what was given as a credential may be one.
fn without_credential(role: Role, asked: &Value, arguments_json: String) -> String {
    if role != Role::AuthProvider {
        return arguments_json;
    }
    let escaped = asked["credential"].to_string();
    let inner = escaped.trim_matches('"');
    if inner.is_empty() { arguments_json } else { arguments_json.replace(inner, "[credential]") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(value: Value) -> Result<(String, Option<Value>), String> {
        Ok((String::new(), Some(value)))
    }

    #[test]
    fn a_delivery_says_whether_it_is_tried_again() {
        assert_eq!(delivery(false, said(json!({"status": "delivered"}))).verdict, "delivered");
        let again =
            delivery(false, said(json!({"status": "retry", "reason": "busy", "retry_after_seconds": 9})));
        assert_eq!((again.verdict.as_str(), again.reason.as_str()), ("retry", "busy"));
        assert!(again.effect.ends_with("after 9 s at the earliest"), "{again:?}");
        assert_eq!(delivery(false, said(json!({"ok": true}))).verdict, "failed");
        assert_eq!(delivery(true, said(json!({"ok": true}))).verdict, "delivered");
        assert_eq!(delivery(true, Err("no".to_owned())).verdict, "failed");
    }

    #[test]
    fn an_authentication_says_as_whom_and_a_credential_is_not_shown() {
        let entry: AuthEntry = serde_json::from_value(
            json!({"action": "oidc.authenticate", "name": "corp", "scopes": {"a": ["chat"]}}),
        )
        .expect("an entry");
        let accepted =
            authentication(&entry, said(json!({"outcome": "accepted", "subject": "ada", "scopes": ["a"]})));
        assert_eq!(accepted.effect, "the request is let in as gw:corp/ada with chat");
        let nothing = authentication(&entry, said(json!({"outcome": "accepted", "subject": "ada"})));
        assert_eq!(nothing.verdict, "rejected");
        assert_eq!(authentication(&entry, said(json!({}))).verdict, "failed");
        let asked = json!({"credential": "s\"3"});
        let sent = json!({"credential": "s\"3", "header": "Bearer s\"3"}).to_string();
        assert!(!without_credential(Role::AuthProvider, &asked, sent).contains("s\\\"3"));
    }

    #[test]
    fn a_reply_is_a_status_or_a_bad_gateway() {
        let made = reply(false, said(json!({"status": 201, "headers": {"etag": "7"}, "body": "made"})));
        assert_eq!(
            (made.verdict.as_str(), made.message.as_str(), made.metadata["etag"].as_str()),
            ("201", "made", "7")
        );
        assert!(reply(false, said(json!({"status": 201, "cookies": 1}))).effect.contains("502"));
        assert_eq!(reply(true, said(json!({"issue": 7}))).message, r#"{"issue":7}"#);
        assert_eq!(reply(true, Ok(("done".to_owned(), None))).message, "done");
    }
}
