//! Checks of the handshake line and the address in it.

use talon_plugin::probe::{ListeningSocket, Stage};
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::failed_stage::check_for_stage;
use crate::harness::{Finding, Harness};

/// A version that no plugin knows.
const UNKNOWN_VERSION: u32 = 987_654;

/// Write permission for other users.
const WRITE_FOR_ALL: u32 = 0o002;

/// The finding when the start failed at another step.
pub(super) fn skipped_at(stage: Stage) -> Finding {
    Finding::Skip(sanitized!("it does not get that far: see {}", check_for_stage(stage)))
}

/// The finding for a step of the start that passes or fails as a whole.
pub(super) fn stage_finding(harness: &Harness<'_>, stage: Stage) -> Finding {
    match &harness.facts.problem {
        Some(problem) if problem.stage == stage => Finding::Fail(problem.text.clone()),
        Some(problem) if problem.stage < stage => skipped_at(problem.stage),
        _ => Finding::pass(),
    }
}

pub(super) async fn unoffered_version(harness: &mut Harness<'_>) -> Finding {
    if let Some(problem) = &harness.facts.problem
        && problem.stage <= Stage::HandshakeLine
    {
        return skipped_at(problem.stage);
    }
    let mut spec = harness.spec.clone();
    spec.app_versions = vec![UNKNOWN_VERSION];
    let mut probe = match harness.prober.start(&spec).await {
        Ok(probe) => probe,
        Err(problem) => return Finding::Skip(problem.text),
    };
    let shaken = probe.handshake().await;
    harness.discard(probe).await;
    match shaken {
        Ok(_) => Finding::Fail(sanitized!(
            "offered only version {}, which does not exist, it claims to speak it",
            UNKNOWN_VERSION
        )),
        Err(problem) if problem.stage == Stage::Version => {
            Finding::Pass("it names a version of its own, which the host refuses".into())
        }
        Err(problem) => Finding::Pass(sanitized!("it does not start then: {}", problem.text)),
    }
}

pub(super) fn socket_mode(harness: &Harness<'_>) -> Finding {
    if let Some(problem) = &harness.facts.problem
        && problem.stage <= Stage::Address
    {
        return skipped_at(problem.stage);
    }
    match harness.facts.socket {
        Some(ListeningSocket::Inherited) => {
            Finding::Pass("it serves on the socket that the host handed over".into())
        }
        Some(ListeningSocket::Bound { mode }) if mode & WRITE_FOR_ALL != 0 => Finding::Warn(sanitized!(
            "its socket has mode {}: everybody may connect who can reach it",
            octal(mode)
        )),
        Some(ListeningSocket::Bound { mode }) => {
            Finding::Pass(sanitized!("its socket has mode {}", octal(mode)))
        }
        Some(ListeningSocket::Tcp) => Finding::Skip("it listens on TCP".into()),
        Some(ListeningSocket::Unknown) | None => Finding::Skip("its socket cannot be looked at".into()),
    }
}

fn octal(mode: u32) -> Sanitized {
    Raw::from(format!("{mode:04o}")).line()
}

pub(super) fn serves(harness: &Harness<'_>) -> Finding {
    use crate::harness::InitResult::Broken;

    match (stage_finding(harness, Stage::Serving), &harness.facts.init) {
        (Finding::Pass(_), Some(Broken(how))) => Finding::Fail(sanitized!(
            "its address takes connections, and the first call (Init) got no answer: {}",
            how
        )),
        (finding, _) => finding,
    }
}
