//! What actions answer in the roles that they declare.

use std::collections::BTreeMap;

use serde_json::Value;
use talon_extensions::{Role, contract};
use talon_sanitize::{Raw, sanitized};

use super::NOTHING_TO_CALL;
use crate::harness::{CallResult, Finding, Harness};

/// The longest description of an answer that is none.
const SHOWN_BYTES: usize = 200;

pub(in crate::checks) async fn roles(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let targets = harness.targets.all.clone();
    if targets.is_empty() {
        return Ok(Finding::Skip(NOTHING_TO_CALL.into()));
    }
    let declared = harness.facts.capabilities.as_ref();
    let actions = declared.map(|declared| declared.actions.clone()).unwrap_or_default();
    let mut asked = 0;
    for target in targets {
        let Some(action) = actions.iter().find(|action| action.name == target.action) else { continue };
        for role in action.roles.iter().filter_map(|role| role.parse::<Role>().ok()) {
            harness.ensure_session().await?;
            let Some(session) = harness.session() else { return Ok(Finding::pass()) };
            // A task's own arguments stand beside those of the role.
            let mut args = if role == Role::ScheduledTask { target.args.clone() } else { BTreeMap::new() };
            args.extend(sample_texts(role));
            let said = harness.call(session, "conformance-roles", &target.action, &args).await;
            asked += 1;
            let CallResult::Answer(answer) = said else { continue };
            if !answer.error.is_empty() {
                continue;
            }
            // Servers of protocols without structured answers write the JSON as text.
            let texts = [&answer.structured_content, &answer.content];
            let json = texts.into_iter().find(|text| !text.trim().is_empty());
            let structured = json.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
            if let Err(error) = contract::check_answer(role, &structured) {
                let role = Raw::from(role.as_str()).line();
                return Ok(Finding::Fail(sanitized!(
                    "{} declares the role {}, but {}",
                    target.sanitized_name(),
                    role,
                    Raw::from(error).line_within(SHOWN_BYTES)
                )));
            }
        }
    }
    Ok(match asked {
        0 => Finding::Skip("no action that may be called declares a role".into()),
        asked => Finding::Pass(sanitized!("{} calls", asked)),
    })
}

/// The sample's arguments as they travel: texts as they are, everything else as JSON.
fn sample_texts(role: Role) -> BTreeMap<String, String> {
    let Value::Object(sample) = contract::sample(role) else { return BTreeMap::new() };
    let text = |value| match value {
        Value::String(text) => text,
        value => value.to_string(),
    };
    sample.into_iter().map(|(name, value)| (name, text(value))).collect()
}
