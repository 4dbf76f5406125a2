//! Checks of what calls put out while they run.

use std::time::Duration;

use futures_util::StreamExt as _;
use talon_plugin_client::describe_status;
use talon_proto::notices::CallOutput;
use talon_proto::notices::notice::Kind;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::time::timeout;
use tonic::Code;

use super::execute::NOTHING_TO_CALL;
use crate::harness::{Finding, Harness};

/// How long output is waited for that may be none.
const LISTEN: Duration = Duration::from_secs(1);
/// The longest line that hosts keep (`talon.plugin.v1`).
const MAX_LINE_BYTES: usize = 4096;

pub(super) async fn calls(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let targets = harness.targets.all.clone();
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    if targets.is_empty() {
        return Ok(Finding::Skip(NOTHING_TO_CALL.into()));
    }
    let Some(mut notices) = session.client.notices().await else {
        return Ok(has_none());
    };
    for (at, target) in targets.iter().enumerate() {
        // Other checks judge the answer.
        harness.call(session, &id(at), &target.action, &target.args).await;
    }
    let mut lines = 0;
    // What they put out is on its way.
    while let Ok(notice) = timeout(LISTEN, notices.next()).await {
        let notice = match notice {
            Some(Ok(notice)) => notice,
            Some(Err(status)) if status.code() == Code::Unimplemented => return Ok(has_none()),
            Some(Err(why)) => {
                return Ok(Finding::Fail(sanitized!(
                    "its stream of notices broke: {}",
                    describe_status(&why)
                )));
            }
            None => return Ok(Finding::Fail("its stream of notices ended by itself".into())),
        };
        let Some(Kind::Output(output)) = notice.kind else { continue };
        lines += output.lines.len();
        if let Some(problem) = problem(&output, targets.len()) {
            return Ok(Finding::Fail(problem));
        }
    }
    Ok(Finding::Pass(sanitized!("{} lines", lines)))
}

fn has_none() -> Finding {
    Finding::Skip("it has no notices".into())
}

/// The id of a call.
fn id(at: usize) -> String {
    format!("conformance-output-{at}")
}

fn problem(output: &CallOutput, calls: usize) -> Option<Sanitized> {
    if !(0..calls).any(|at| output.call_id == id(at)) {
        let id = Raw::from(output.call_id.as_str()).line_within(64);
        return Some(sanitized!("it put out lines of the call {:?}, which does not run", id));
    }
    if output.lines.iter().any(|line| line.contains(['\n', '\r'])) {
        return Some("a line holds a line end".into());
    }
    let long = output.lines.iter().map(String::len).find(|bytes| *bytes > MAX_LINE_BYTES)?;
    Some(sanitized!("a line has {} bytes, and {} are kept", long, MAX_LINE_BYTES))
}
