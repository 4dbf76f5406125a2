//! Checks of how a plugin stops.

use std::time::Duration;

use talon_plugin::probe::{StopMethod, StopOutcome};
use talon_plugin_config::spec::Dialect;
use talon_sanitize::{Sanitized, sanitized};

use crate::harness::{Finding, Harness, InitResult, Session};

/// Starts and initialises a new process, to be stopped.
async fn start_fresh_process(harness: &Harness<'_>) -> Result<Session, Finding> {
    if let Some(finding) = harness.skip_reason() {
        return Err(finding);
    }
    let again = |text: Sanitized| Finding::Fail(sanitized!("it did not start once more: {}", text));
    let session = harness.start_session(|_| {}).await.map_err(|problem| again(problem.text))?;
    match harness.call_init(&session, harness.spec.config.clone()).await {
        InitResult::Done | InitResult::NotImplemented => Ok(session),
        InitResult::Refused(text) | InitResult::Broken(text) => {
            session.probe.kill().await;
            Err(again(text))
        }
    }
}

fn grace(harness: &Harness<'_>) -> Duration {
    harness.spec.lifecycle.grace_period
}

pub(super) async fn shutdown(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let session = start_fresh_process(harness).await?;
    let grace = grace(harness);
    let agreed = session.client.shutdown(grace).await;
    if !agreed {
        harness.discard(session.probe).await;
        return Ok(Finding::Warn("it does not know plugin.GRPCController/Shutdown and gets SIGTERM".into()));
    }
    let exit = session.probe.wait_for_exit(grace).await;
    harness.discard(session.probe).await;
    Ok(match exit {
        None => {
            Finding::Fail(sanitized!("it agreed to end and was still there after {} s", grace.as_secs_f32()))
        }
        Some(exit) if exit == "exit code 0" => Finding::pass(),
        Some(exit) => Finding::Warn(sanitized!("it ended with {}", exit)),
    })
}

pub(super) async fn sigterm(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let session = start_fresh_process(harness).await?;
    let grace = grace(harness);
    let interrupts = session.handshake.dialect == Dialect::OpenTalon;
    let mut exit = None;
    if interrupts {
        session.probe.interrupt();
        exit = session.probe.wait_for_exit(grace).await;
    }
    if exit.is_none() {
        session.probe.terminate();
        exit = session.probe.wait_for_exit(grace).await;
    }
    harness.discard(session.probe).await;
    Ok(match exit {
        None => Finding::Fail(sanitized!("it was still there {} s after SIGTERM", grace.as_secs_f32())),
        Some(exit) => Finding::Pass(sanitized!("it ended with {}", exit)),
    })
}

pub(super) async fn nothing_left(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let session = start_fresh_process(harness).await?;
    let grace = grace(harness);
    let by = match session.handshake.dialect {
        Dialect::OpenTalon => StopMethod::Interrupt,
        _ => StopMethod::Shutdown,
    };
    let end = session.probe.stop(Some(&session.client), by, grace).await;
    harness.discard(session.probe).await;
    let StopOutcome { ended, processes, sockets } = match end {
        Ok(end) => end,
        Err(error) => {
            let error = talon_sanitize::Raw::of(error).line();
            return Ok(Finding::Skip(sanitized!("this machine does not let us watch its end: {}", error)));
        }
    };
    Ok(match (ended, processes.as_slice(), sockets.as_slice()) {
        (false, _, _) => {
            Finding::Skip("it does not end when asked: see stop.shutdown and stop.sigterm".into())
        }
        (true, [], []) => Finding::pass(),
        (true, [], sockets) => Finding::Pass(sanitized!(
            "it left the socket {} behind, which goes with its directory",
            Sanitized::join(sockets, ", ")
        )),
        (true, processes, _) => {
            Finding::Fail(sanitized!("it ended and left behind {}", Sanitized::join(processes, ", ")))
        }
    })
}
