//! Valid calls and their answers.

use serde_json::Value;
use talon_plugin_config::spec::MIN_MESSAGE_BYTES;
use talon_sanitize::{Raw, sanitized};

use super::NOTHING_TO_CALL;
use crate::harness::targets::Target;
use crate::harness::{CallResult, Finding, Harness, InitResult, Session};

pub(in crate::checks) async fn echo_id(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let target = harness.targets.first();
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    const ID: &str = "conformance-echo-7f3a";
    let said = harness.call(session, ID, &target.action, &target.args).await;
    Ok(match said {
        CallResult::Answer(answer) if answer.call_id == ID => Finding::pass(),
        CallResult::Answer(answer) => Finding::Fail(sanitized!(
            "the call {} of {} was answered under the id {:?}",
            ID,
            target.sanitized_name(),
            Raw::from(&answer.call_id).line_within(64)
        )),
        CallResult::Undecodable(_) => Finding::Skip("its answer cannot be read: see execute.decodes".into()),
        CallResult::Status(..) if !target.known => Finding::Skip(NOTHING_TO_CALL.into()),
        said => {
            Finding::Fail(sanitized!("the call of {} brought {}", target.sanitized_name(), said.describe()))
        }
    })
}

pub(in crate::checks) async fn decodes(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let targets = match harness.targets.all.is_empty() {
        true => vec![harness.targets.first()],
        false => harness.targets.all.clone(),
    };
    for target in targets {
        harness.ensure_session().await?;
        let Some(session) = harness.session() else { return Ok(Finding::pass()) };
        let said = harness.call(session, "conformance-decodes", &target.action, &target.args).await;
        if let Some(problem) = decode_problem(&target, &said) {
            return Ok(problem);
        }
    }
    Ok(Finding::pass())
}

/// Why an answer is not valid. Missing answers are judged by other checks.
fn decode_problem(target: &Target, said: &CallResult) -> Option<Finding> {
    let failed = |what| Some(Finding::Fail(sanitized!("{} answered with {}", target.sanitized_name(), what)));
    match said {
        CallResult::Undecodable(_) => failed(said.describe()),
        CallResult::Answer(answer) if !answer.structured_content.is_empty() => {
            let parsed = serde_json::from_str::<Value>(&answer.structured_content);
            parsed.err().and_then(|error| {
                failed(sanitized!("structured content that is no JSON: {}", Raw::of(error).line_within(120)))
            })
        }
        _ => None,
    }
}

/// Announces a small limit to a new process, and calls all actions that may be called.
pub(in crate::checks) async fn large_answer(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    if let Some(finding) = harness.skip_reason() {
        return Err(finding);
    }
    if harness.targets.all.is_empty() {
        return Ok(Finding::Skip(NOTHING_TO_CALL.into()));
    }
    let again =
        |text| Finding::Fail(sanitized!("with an announced limit of 64 KiB it did not start: {}", text));
    let session = harness.start_session(|spec| spec.max_message_bytes = MIN_MESSAGE_BYTES).await;
    let session = session.map_err(|problem| again(problem.text))?;
    let found = match harness.call_init(&session, harness.spec.config.clone()).await {
        InitResult::Done | InitResult::NotImplemented => check_answer_sizes(harness, &session).await,
        InitResult::Refused(text) | InitResult::Broken(text) => again(text),
    };
    harness.discard(session.probe).await;
    Ok(found)
}

async fn check_answer_sizes(harness: &Harness<'_>, session: &Session) -> Finding {
    let mut largest = 0;
    for target in &harness.targets.all {
        let said = harness.call(session, "conformance-large", &target.action, &target.args).await;
        let bytes = match said {
            CallResult::Answer(answer) => prost::Message::encoded_len(&answer),
            CallResult::TooLarge(limit) => limit,
            _ => 0,
        };
        if bytes > MIN_MESSAGE_BYTES {
            return Finding::Fail(sanitized!(
                "with an announced limit of {} bytes, {} answered with {}",
                MIN_MESSAGE_BYTES,
                target.sanitized_name(),
                bytes
            ));
        }
        largest = largest.max(bytes);
    }
    Finding::Pass(sanitized!("the largest answer had {} bytes", largest))
}
