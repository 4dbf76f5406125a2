//! `TestExtension`: one entry of `extensions`, tried with a sample.

use serde_json::{Map, Value};
use talon_extensions::contract::{HookRequest, VerdictOutcome, sample};
use talon_extensions::{Extensions, FailurePolicy, HookEntry, Role};
use talon_proto::agent::{TestExtensionRequest, TestExtensionResponse};
use talon_sanitize::nearest;
use tokio::time::Instant;
use tonic::Status;

use super::client::Client;
use super::service::Service;
use crate::hooks;

/// The largest sample; twice the longest message of a person.
const MAX_SAMPLE_BYTES: usize = 512 << 10;

impl Service {
    pub(super) async fn test_extension(
        &self,
        client: &Client,
        request: TestExtensionRequest,
    ) -> Result<TestExtensionResponse, Status> {
        client.require_operator("to try an extension")?;
        let refused = |why: String| Status::invalid_argument(talon_child::truncate(why));
        let role: Role = request.role.parse().map_err(|error| refused(format!("{error}")))?;
        let setup = self.agent.setup();
        let hooks = &setup.environment.hooks;
        let entry = entry(hooks.extensions(), role, &request.entry).map_err(refused)?;
        let asked = with_sample(role, &request.sample_json).map_err(refused)?;
        let began = Instant::now();
        let answer = hooks::ask(hooks.host(), role, entry, &asked).await;
        let mut response = TestExtensionResponse {
            entry: entry.name().to_owned(),
            // Maps with string keys serialize.
            arguments_json: serde_json::to_string(&answer.arguments).unwrap_or_default(),
            duration_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
            effect: effect(role, entry, answer.verdict.as_ref().ok()),
            ..TestExtensionResponse::default()
        };
        match answer.verdict {
            Err(error) => {
                response.verdict = "failed".to_owned();
                response.reason = error.to_string();
            }
            Ok(verdict) => {
                response.verdict = verdict.as_str().to_owned();
                match verdict {
                    VerdictOutcome::Pass => {}
                    VerdictOutcome::Annotate { metadata } => {
                        response.metadata = metadata.into_iter().collect()
                    }
                    VerdictOutcome::Replace { message, metadata } => {
                        response.message = message;
                        response.metadata = metadata.into_iter().collect();
                    }
                    VerdictOutcome::Drop { reason } => response.reason = reason,
                }
            }
        }
        Ok(response)
    }
}

/// The entry of this name, or the only one with this action.
fn entry<'e>(extensions: &'e Extensions, role: Role, name: &str) -> Result<&'e HookEntry, String> {
    let hooks = extensions.hooks(role);
    let named = hooks.iter().find(|hook| hook.name() == name);
    if let Some(hook) = named.or_else(|| hooks.iter().find(|hook| hook.action == name)) {
        return Ok(hook);
    }
    let names = || hooks.iter().map(HookEntry::name);
    let help = match nearest(name, names()).first() {
        Some(near) => format!("did you mean {near}?"),
        None if hooks.is_empty() => format!("extensions.{} is empty", role.list()),
        None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
    };
    Err(format!("extensions.{} has no entry {name:?}; {help}", role.list()))
}

/// The sample, with what the client gives laid over it.
fn with_sample(role: Role, json: &str) -> Result<HookRequest, String> {
    if json.len() > MAX_SAMPLE_BYTES {
        return Err(format!(
            "the sample has {} bytes, and {MAX_SAMPLE_BYTES} are the most: shorten it",
            json.len()
        ));
    }
    let mut values = sample(role);
    if !json.trim().is_empty() {
        let given: Map<String, Value> = serde_json::from_str(json)
            .map_err(|error| format!("the sample is no JSON object: {error}; see docs/extensions"))?;
        for (name, value) in given {
            match (values.get_mut(&name), value) {
                (Some(Value::Object(fields)), Value::Object(more)) => fields.extend(more),
                (Some(old), value) => *old = value,
                (None, _) => {
                    return Err(format!(
                        "the role {role} has no argument {name:?}: it has message, session and metadata"
                    ));
                }
            }
        }
    }
    serde_json::from_value(values)
        .map_err(|error| format!("the sample does not fit the role {role}: {error}"))
}

/// What would become of a message.
fn effect(role: Role, entry: &HookEntry, verdict: Option<&VerdictOutcome>) -> String {
    let what = if role == Role::ResponseHook { "answer" } else { "message" };
    match (verdict, entry.policy(role)) {
        (Some(VerdictOutcome::Pass), _) => format!("the {what} goes on byte for byte"),
        (Some(VerdictOutcome::Annotate { .. }), _) => {
            format!("the {what} goes on byte for byte, and the metadata is noted")
        }
        (Some(VerdictOutcome::Replace { .. }), _) => format!("the new text takes the place of the {what}"),
        (Some(VerdictOutcome::Drop { .. }), _) => {
            format!("the {what} goes no further, and the person is told the reason")
        }
        (None, FailurePolicy::Closed) => "the turn ends with hook_failed (on_failure: closed)".to_owned(),
        (None, FailurePolicy::Open) => {
            format!("the {what} goes on, and a notice says that the hook failed (on_failure: open)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_laid_over_the_built_in_one() {
        let asked = with_sample(Role::RequestHook, r#"{"message": "x", "session": {"sender": "bob"}}"#)
            .expect("fits");
        assert_eq!(
            (asked.message.as_str(), asked.session.sender.as_str(), asked.session.turn),
            ("x", "bob", 1)
        );
        assert!(with_sample(Role::Filter, "").is_ok());
        for (json, says) in [
            ("[]", "no JSON object"),
            (r#"{"mesage": ""}"#, "no argument"),
            (r#"{"message": 7}"#, "does not fit"),
        ] {
            assert!(with_sample(Role::Filter, json).expect_err(json).contains(says));
        }
    }

    #[test]
    fn an_entry_is_found_by_name_and_by_action() {
        let named = HookEntry { name: Some("again".to_owned()), ..HookEntry::new("pii.scan") };
        let extensions = Extensions { filters: vec![HookEntry::new("a.b"), named], ..Extensions::default() };
        assert_eq!(entry(&extensions, Role::Filter, "pii.scan").expect("found").name(), "again");
        assert_eq!(entry(&extensions, Role::Filter, "again").expect("found").action, "pii.scan");
        assert!(entry(&extensions, Role::Filter, "agai").expect_err("none").contains("did you mean again?"));
        assert!(
            entry(&extensions, Role::RequestHook, "a.b")
                .expect_err("none")
                .contains("request_hooks is empty")
        );
    }
}
