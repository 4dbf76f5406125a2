//! What would come of the verdict of a filter or hook.

use serde_json::Value;
use talon_extensions::contract::VerdictOutcome;
use talon_extensions::{FailurePolicy, HookEntry, Role};
use talon_proto::agent::TestExtensionResponse;
use tokio::time::Instant;

use crate::hooks::{self, RoleHost};

pub(super) async fn test(
    host: &dyn RoleHost,
    role: Role,
    entry: &HookEntry,
    asked: Value,
) -> Result<TestExtensionResponse, String> {
    let asked = serde_json::from_value(asked).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let answer = hooks::ask(host, role, entry, &asked).await;
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
                VerdictOutcome::Annotate { metadata } => response.metadata = metadata.into_iter().collect(),
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
