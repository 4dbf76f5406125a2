//! Checks of the handshake line and the address in it.

use talon_plugin::probe::{Socket, Stage};
use talon_sanitize::{Raw, Sanitized, inert};

use super::owner;
use crate::bench::{Bench, Finding};

/// A version that no plugin knows.
const UNHEARD_OF: u32 = 987_654;

/// Write permission for other users.
const WRITE_FOR_ALL: u32 = 0o002;

/// The finding when the start failed at another step.
pub(super) fn elsewhere(stage: Stage) -> Finding {
    Finding::Skip(inert!("it does not get that far: see {}", owner(stage)))
}

/// The finding for a step of the start that passes or fails as a whole.
pub(super) fn at(bench: &Bench<'_>, stage: Stage) -> Finding {
    match &bench.facts.problem {
        Some(problem) if problem.stage == stage => Finding::Fail(problem.text.clone()),
        Some(problem) if problem.stage < stage => elsewhere(problem.stage),
        _ => Finding::pass(),
    }
}

pub(super) async fn unoffered_version(bench: &mut Bench<'_>) -> Finding {
    if let Some(problem) = &bench.facts.problem
        && problem.stage <= Stage::Line
    {
        return elsewhere(problem.stage);
    }
    let mut spec = bench.spec.clone();
    spec.app_versions = vec![UNHEARD_OF];
    let mut probe = match bench.prober.start(&spec).await {
        Ok(probe) => probe,
        Err(problem) => return Finding::Skip(problem.text),
    };
    let shaken = probe.handshake().await;
    bench.spoil(probe).await;
    match shaken {
        Ok(_) => Finding::Fail(inert!(
            "offered only version {}, which does not exist, it claims to speak it",
            UNHEARD_OF
        )),
        Err(problem) if problem.stage == Stage::Version => {
            Finding::Pass("it names a version of its own, which the host refuses".into())
        }
        Err(problem) => Finding::Pass(inert!("it does not start then: {}", problem.text)),
    }
}

pub(super) fn socket_mode(bench: &Bench<'_>) -> Finding {
    if let Some(problem) = &bench.facts.problem
        && problem.stage <= Stage::Address
    {
        return elsewhere(problem.stage);
    }
    match bench.facts.socket {
        Some(Socket::Handed) => Finding::Pass("it serves on the socket that the host handed over".into()),
        Some(Socket::Own { mode }) if mode & WRITE_FOR_ALL != 0 => Finding::Warn(inert!(
            "its socket has mode {}: everybody may connect who can reach it",
            octal(mode)
        )),
        Some(Socket::Own { mode }) => Finding::Pass(inert!("its socket has mode {}", octal(mode))),
        Some(Socket::Tcp) => Finding::Skip("it listens on TCP".into()),
        Some(Socket::Unknown) | None => Finding::Skip("its socket cannot be looked at".into()),
    }
}

fn octal(mode: u32) -> Sanitized {
    Raw::from(format!("{mode:04o}")).line()
}

pub(super) fn serves(bench: &Bench<'_>) -> Finding {
    use crate::bench::InitSaid::Broken;

    match (at(bench, Stage::Serves), &bench.facts.init) {
        (Finding::Pass(_), Some(Broken(how))) => Finding::Fail(inert!(
            "its address takes connections, and the first call (Init) got no answer: {}",
            how
        )),
        (finding, _) => finding,
    }
}
