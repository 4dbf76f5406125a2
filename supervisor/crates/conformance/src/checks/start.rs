//! Checks of the start and of the plugin's output.

use std::time::Duration;

use talon_plugin::probe::Stage;
use talon_plugin_client::handshake::{HandshakeError, parse};
use talon_plugin_config::spec::Dialect;
use talon_sanitize::{Sanitized, sanitized};

use super::handshake;
use crate::harness::{Finding, Harness, stdout_lines};

/// A variable that no plugin reads, used as the cookie's name.
const NO_COOKIE: &str = "TALON_CONFORMANCE_NO_COOKIE";

/// How long a program without the cookie may take to explain itself. It has nothing to wait for.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn handshake(harness: &Harness<'_>) -> Finding {
    match &harness.facts.problem {
        Some(problem) if problem.stage == Stage::Handshake => Finding::Fail(problem.text.clone()),
        Some(problem) if problem.stage == Stage::StrayOutput => handshake::skipped_at(problem.stage),
        _ => match &harness.facts.handshake {
            Some(shaken) => Finding::Pass(sanitized!("{}", talon_sanitize::Raw::of(shaken).line())),
            None => Finding::pass(),
        },
    }
}

pub(super) fn stray_output(harness: &Harness<'_>) -> Finding {
    if let Some(problem) = &harness.facts.problem {
        match problem.stage {
            Stage::StrayOutput => return Finding::Fail(problem.text.clone()),
            Stage::Handshake => return handshake::skipped_at(problem.stage),
            _ => {}
        }
    }
    match &harness.facts.stray {
        (0, _) => Finding::pass(),
        (lines, first) => Finding::Warn(sanitized!(
            "{} lines came on standard output before the handshake line; the first: {}",
            lines,
            first
        )),
    }
}

pub(super) async fn single_line(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let session = harness.ensure_session().await?;
    // Init and Capabilities came after the handshake, so a second line that was printed at once has been read
    // by now.
    let lines = stdout_lines(&session.probe).split_off(session.probe.stray_lines());
    Ok(match lines.iter().find(|line| looks_like_a_handshake(line)) {
        Some(line) => Finding::Fail(sanitized!("a second handshake line came: {}", line)),
        None => Finding::pass(),
    })
}

pub(super) async fn cookie(harness: &mut Harness<'_>) -> Finding {
    let mut spec = harness.spec.clone();
    spec.cookie.key = NO_COOKIE.to_owned();
    let mut probe = match harness.prober.start(&spec).await {
        Ok(probe) => probe,
        Err(problem) => return Finding::Skip(problem.text),
    };
    let shaken = tokio::time::timeout(EXPLANATION_TIMEOUT, probe.handshake()).await;
    let exit = match shaken {
        Ok(Ok(_)) => {
            harness.discard(probe).await;
            return Finding::Warn(
                "it shakes hands without the magic cookie, as if a host had started it".into(),
            );
        }
        Ok(Err(problem)) if problem.stage > Stage::Handshake => {
            harness.discard(probe).await;
            return Finding::Warn("it prints a handshake line without the magic cookie, too".into());
        }
        // The failed handshake already waited for the exit.
        Ok(Err(_)) => probe.wait_for_exit(Duration::from_secs(1)).await,
        Err(_) => None,
    };
    let words = probe.last_line();
    harness.discard(probe).await;
    match (exit, words) {
        (None, _) => Finding::Warn(sanitized!(
            "without the magic cookie it neither explains itself nor ends within {} s",
            EXPLANATION_TIMEOUT.as_secs()
        )),
        (Some(exit), None) => {
            Finding::Warn(sanitized!("without the magic cookie it ends with {} and says nothing", exit))
        }
        (Some(exit), Some(words)) if exit.starts_with("exit code") => {
            Finding::Pass(sanitized!("it says: {}", words))
        }
        (Some(exit), Some(_)) => Finding::Warn(sanitized!("without the magic cookie it ends with {}", exit)),
    }
}

pub(super) fn flood(harness: &Harness<'_>) -> Result<Finding, Finding> {
    if let Some(finding) = harness.skip_reason() {
        return Err(finding);
    }
    let running = harness.session().map_or(0, |session| session.probe.dropped_lines());
    Ok(match harness.dropped_lines + running {
        0 => Finding::pass(),
        dropped => {
            Finding::Fail(sanitized!("{} of its lines were dropped, because there were too many", dropped))
        }
    })
}

fn looks_like_a_handshake(line: &Sanitized) -> bool {
    !matches!(parse(line, Dialect::Auto, &[1]), Err(HandshakeError::Stray { .. }))
}
