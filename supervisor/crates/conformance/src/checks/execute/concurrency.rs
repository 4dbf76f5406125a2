//! Concurrent calls, cancelled calls, and calls past their deadline.

use std::time::Duration;

use futures_util::future::join_all;
use talon_sanitize::{Raw, sanitized};

use super::NOTHING_TO_CALL;
use crate::harness::{CallResult, Finding, Harness};

/// The default number of concurrent calls of a host.
const CONCURRENT_CALLS: usize = 16;

/// The number of cancelled calls, one after the other, so that the plugin is working on at least one of them.
const CANCELLED_CALLS: usize = 8;
/// The time before a call is cancelled.
const CANCEL_AFTER: Duration = Duration::from_millis(5);

/// The deadline in the header of the call.
const SHORT_DEADLINE: Duration = Duration::from_millis(50);
/// How long after the deadline the plugin may take to end the call.
const DEADLINE_OVERRUN: Duration = Duration::from_secs(5);

pub(in crate::checks) async fn concurrent(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let target = harness.targets.first();
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    let ids: Vec<String> =
        (0..CONCURRENT_CALLS).map(|number| format!("conformance-at-once-{number:02}")).collect();
    let calls = ids.iter().map(|id| harness.call(session, id, &target.action, &target.args));
    let said = join_all(calls).await;
    for (id, said) in ids.iter().zip(&said) {
        let id = Raw::from(id).line();
        match said {
            CallResult::Answer(answer) if answer.call_id == *id => {}
            CallResult::Answer(answer) => {
                let other = Raw::from(&answer.call_id).line_within(64);
                return Ok(Finding::Fail(sanitized!(
                    "of {} calls at once, {} was answered under the id {:?}",
                    CONCURRENT_CALLS,
                    id,
                    other
                )));
            }
            CallResult::Undecodable(_) => {}
            CallResult::Status(..) if !target.known => return Ok(Finding::Skip(NOTHING_TO_CALL.into())),
            other => {
                let words = other.describe();
                return Ok(Finding::Fail(sanitized!(
                    "of {} calls at once, {} brought {}",
                    CONCURRENT_CALLS,
                    id,
                    words
                )));
            }
        }
    }
    Ok(Finding::pass())
}

pub(in crate::checks) async fn cancelled(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let target = harness.targets.first();
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    let mut in_time = 0_usize;
    for _ in 0..CANCELLED_CALLS {
        // Dropping the call's future resets the stream.
        let call = harness.call(session, "conformance-given-up", &target.action, &target.args);
        in_time += usize::from(tokio::time::timeout(CANCEL_AFTER, call).await.is_ok());
    }
    Ok(match harness.still_serves(session).await {
        Err(how) => Finding::Fail(sanitized!("after calls were given up it no longer answers: {}", how)),
        Ok(()) if in_time == CANCELLED_CALLS => Finding::Pass(
            "it answered before its calls could be given up: name a slow action with --action".into(),
        ),
        Ok(()) => Finding::pass(),
    })
}

pub(in crate::checks) async fn deadline(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let target = harness.targets.first();
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    let (action, args) = (target.action.as_str(), &target.args);
    let began = tokio::time::Instant::now();
    let said = harness
        .call_with(
            session,
            "conformance-deadline",
            action,
            args,
            Some(SHORT_DEADLINE),
            SHORT_DEADLINE + DEADLINE_OVERRUN,
        )
        .await;
    let took = began.elapsed();
    if let Err(how) = harness.still_serves(session).await {
        return Ok(Finding::Fail(sanitized!("after a call's deadline it no longer answers: {}", how)));
    }
    Ok(match said {
        CallResult::Broken(how) => Finding::Fail(sanitized!("a call past its deadline brought {}", how)),
        CallResult::NoAnswer => Finding::Warn(sanitized!(
            "{} with a deadline of {} ms was not ended within {} s",
            target.sanitized_name(),
            SHORT_DEADLINE.as_millis(),
            DEADLINE_OVERRUN.as_secs()
        )),
        _ if took < SHORT_DEADLINE => {
            Finding::Pass("it answered before the deadline: name a slow action with --action".into())
        }
        _ => Finding::Pass(sanitized!("the call was ended after {} ms", took.as_millis())),
    })
}
