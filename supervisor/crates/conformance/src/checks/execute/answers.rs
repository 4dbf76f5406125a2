//! Valid calls and their answers.

use serde_json::Value;
use talon_plugin::spec::MIN_MESSAGE_BYTES;
use talon_sanitize::{Raw, inert};

use super::NOTHING_TO_CALL;
use crate::bench::targets::Target;
use crate::bench::{Bench, Finding, InitSaid, Said, Session};

pub(in crate::checks) async fn echo_id(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    let target = bench.targets.first();
    bench.live().await?;
    let Some(session) = bench.session() else { return Ok(Finding::pass()) };
    const ID: &str = "conformance-echo-7f3a";
    let said = bench.call(session, ID, &target.action, &target.args).await;
    Ok(match said {
        Said::Answer(answer) if answer.call_id == ID => Finding::pass(),
        Said::Answer(answer) => Finding::Fail(inert!(
            "the call {} of {} was answered under the id {:?}",
            ID,
            target.shown(),
            Raw::from(&answer.call_id).line_within(64)
        )),
        Said::Undecodable(_) => Finding::Skip("its answer cannot be read: see execute.decodes".into()),
        Said::Status(..) if !target.known => Finding::Skip(NOTHING_TO_CALL.into()),
        said => Finding::Fail(inert!("the call of {} brought {}", target.shown(), said.words())),
    })
}

pub(in crate::checks) async fn decodes(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    let targets = match bench.targets.all.is_empty() {
        true => vec![bench.targets.first()],
        false => bench.targets.all.clone(),
    };
    for target in targets {
        bench.live().await?;
        let Some(session) = bench.session() else { return Ok(Finding::pass()) };
        let said = bench.call(session, "conformance-decodes", &target.action, &target.args).await;
        if let Some(problem) = unreadable(&target, &said) {
            return Ok(problem);
        }
    }
    Ok(Finding::pass())
}

/// Why an answer is not valid. Missing answers are judged by other checks.
fn unreadable(target: &Target, said: &Said) -> Option<Finding> {
    let failed = |what| Some(Finding::Fail(inert!("{} answered with {}", target.shown(), what)));
    match said {
        Said::Undecodable(_) => failed(said.words()),
        Said::Answer(answer) if !answer.structured_content.is_empty() => {
            let parsed = serde_json::from_str::<Value>(&answer.structured_content);
            parsed.err().and_then(|error| {
                failed(inert!("structured content that is no JSON: {}", Raw::of(error).line_within(120)))
            })
        }
        _ => None,
    }
}

/// Announces a small limit to a new process, and calls all actions that may be called.
pub(in crate::checks) async fn large(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    if let Some(finding) = bench.never_served() {
        return Err(finding);
    }
    if bench.targets.all.is_empty() {
        return Ok(Finding::Skip(NOTHING_TO_CALL.into()));
    }
    let again = |text| Finding::Fail(inert!("with an announced limit of 64 KiB it did not start: {}", text));
    let session = bench.other(|spec| spec.max_message_bytes = MIN_MESSAGE_BYTES).await;
    let session = session.map_err(|problem| again(problem.text))?;
    let found = match bench.init(&session, bench.spec.config.clone()).await {
        InitSaid::Done | InitSaid::None => all_below(bench, &session).await,
        InitSaid::Refused(text) | InitSaid::Broken(text) => again(text),
    };
    bench.spoil(session.probe).await;
    Ok(found)
}

async fn all_below(bench: &Bench<'_>, session: &Session) -> Finding {
    let mut largest = 0;
    for target in &bench.targets.all {
        let said = bench.call(session, "conformance-large", &target.action, &target.args).await;
        let bytes = match said {
            Said::Answer(answer) => prost::Message::encoded_len(&answer),
            Said::TooLarge(limit) => limit,
            _ => 0,
        };
        if bytes > MIN_MESSAGE_BYTES {
            return Finding::Fail(inert!(
                "with an announced limit of {} bytes, {} answered with {}",
                MIN_MESSAGE_BYTES,
                target.shown(),
                bytes
            ));
        }
        largest = largest.max(bytes);
    }
    Finding::Pass(inert!("the largest answer had {} bytes", largest))
}
