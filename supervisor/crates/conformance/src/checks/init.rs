//! Checks of Init: with the plugin's settings, without any, and with an unknown one.

use serde_json::{Map, Value};
use talon_sanitize::{Sanitized, sanitized};

use super::handshake;
use crate::harness::{Finding, Harness, InitResult};

/// A setting that no plugin has.
const UNKNOWN_KEY: &str = "talon_conformance_unknown";

pub(super) fn settings(harness: &Harness<'_>) -> Finding {
    if let Some(problem) = &harness.facts.problem {
        return handshake::skipped_at(problem.stage);
    }
    match &harness.facts.init {
        Some(InitResult::Done) => Finding::pass(),
        Some(InitResult::NotImplemented) if harness.spec.config.is_empty() => {
            Finding::Pass("it has no Init".into())
        }
        Some(InitResult::NotImplemented) => {
            Finding::Warn("it has no Init, and its configuration holds settings that it never gets".into())
        }
        Some(InitResult::Refused(text)) => Finding::Fail(sanitized!("it refused its settings: {}", text)),
        Some(InitResult::Broken(_)) | None => {
            Finding::Skip("it does not get that far: see handshake.serves".into())
        }
    }
}

pub(super) async fn empty_config(harness: &mut Harness<'_>) -> Finding {
    let said = match init_fresh_process(harness, Map::new()).await {
        Ok(said) => said,
        Err(finding) => return finding,
    };
    match said {
        InitResult::Done => Finding::pass(),
        InitResult::NotImplemented => Finding::Pass("it has no Init".into()),
        InitResult::Refused(text) if text.ends_with("without a text") => {
            Finding::Fail(sanitized!("it refuses {{}} and does not say why: {}", text))
        }
        InitResult::Refused(text) => Finding::Pass(sanitized!("it needs settings, and says so: {}", text)),
        InitResult::Broken(how) => Finding::Fail(sanitized!("Init with {{}} got no answer: {}", how)),
    }
}

pub(super) async fn unknown_keys(harness: &mut Harness<'_>) -> Finding {
    let mut config = harness.spec.config.clone();
    config.insert(UNKNOWN_KEY.to_owned(), Value::Bool(true));
    let said = match init_fresh_process(harness, config).await {
        Ok(said) => said,
        Err(finding) => return finding,
    };
    match said {
        InitResult::Done => Finding::Pass("it ignores what it does not know".into()),
        InitResult::NotImplemented => Finding::Pass("it has no Init".into()),
        InitResult::Refused(text) => Finding::Pass(sanitized!("it refuses what it does not know: {}", text)),
        InitResult::Broken(how) => {
            Finding::Fail(sanitized!("Init with an unknown key got no answer: {}", how))
        }
    }
}

/// Calls Init with these settings in a new process.
async fn init_fresh_process(
    harness: &mut Harness<'_>,
    config: Map<String, Value>,
) -> Result<InitResult, Finding> {
    if let Some(problem) = &harness.facts.problem {
        return Err(handshake::skipped_at(problem.stage));
    }
    if let Some(InitResult::Broken(_)) = &harness.facts.init {
        return Err(Finding::Skip("it does not get that far: see handshake.serves".into()));
    }
    let again = |text: Sanitized| Finding::Fail(sanitized!("it did not start once more: {}", text));
    let session = harness.start_session(|_| {}).await.map_err(|problem| again(problem.text))?;
    let said = harness.call_init(&session, config).await;
    harness.discard(session.probe).await;
    Ok(said)
}
