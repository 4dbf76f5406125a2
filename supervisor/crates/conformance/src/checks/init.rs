//! Checks of Init: with the plugin's settings, without any, and with an unknown one.

use serde_json::{Map, Value};
use talon_sanitize::{Sanitized, inert};

use super::handshake;
use crate::bench::{Bench, Finding, InitSaid};

/// A setting that no plugin has.
const UNKNOWN_KEY: &str = "talon_conformance_unknown";

pub(super) fn settings(bench: &Bench<'_>) -> Finding {
    if let Some(problem) = &bench.facts.problem {
        return handshake::elsewhere(problem.stage);
    }
    match &bench.facts.init {
        Some(InitSaid::Done) => Finding::pass(),
        Some(InitSaid::None) if bench.spec.config.is_empty() => Finding::Pass("it has no Init".into()),
        Some(InitSaid::None) => {
            Finding::Warn("it has no Init, and its configuration holds settings that it never gets".into())
        }
        Some(InitSaid::Refused(text)) => Finding::Fail(inert!("it refused its settings: {}", text)),
        Some(InitSaid::Broken(_)) | None => {
            Finding::Skip("it does not get that far: see handshake.serves".into())
        }
    }
}

pub(super) async fn empty_config(bench: &mut Bench<'_>) -> Finding {
    let said = match fresh(bench, Map::new()).await {
        Ok(said) => said,
        Err(finding) => return finding,
    };
    match said {
        InitSaid::Done => Finding::pass(),
        InitSaid::None => Finding::Pass("it has no Init".into()),
        InitSaid::Refused(text) if text.ends_with("without a text") => {
            Finding::Fail(inert!("it refuses {{}} and does not say why: {}", text))
        }
        InitSaid::Refused(text) => Finding::Pass(inert!("it needs settings, and says so: {}", text)),
        InitSaid::Broken(how) => Finding::Fail(inert!("Init with {{}} got no answer: {}", how)),
    }
}

pub(super) async fn unknown_keys(bench: &mut Bench<'_>) -> Finding {
    let mut config = bench.spec.config.clone();
    config.insert(UNKNOWN_KEY.to_owned(), Value::Bool(true));
    let said = match fresh(bench, config).await {
        Ok(said) => said,
        Err(finding) => return finding,
    };
    match said {
        InitSaid::Done => Finding::Pass("it ignores what it does not know".into()),
        InitSaid::None => Finding::Pass("it has no Init".into()),
        InitSaid::Refused(text) => Finding::Pass(inert!("it refuses what it does not know: {}", text)),
        InitSaid::Broken(how) => Finding::Fail(inert!("Init with an unknown key got no answer: {}", how)),
    }
}

/// Calls Init with these settings in a new process.
async fn fresh(bench: &mut Bench<'_>, config: Map<String, Value>) -> Result<InitSaid, Finding> {
    if let Some(problem) = &bench.facts.problem {
        return Err(handshake::elsewhere(problem.stage));
    }
    if let Some(InitSaid::Broken(_)) = &bench.facts.init {
        return Err(Finding::Skip("it does not get that far: see handshake.serves".into()));
    }
    let again = |text: Sanitized| Finding::Fail(inert!("it did not start once more: {}", text));
    let session = bench.other(|_| {}).await.map_err(|problem| again(problem.text))?;
    let said = bench.init(&session, config).await;
    bench.spoil(session.probe).await;
    Ok(said)
}
