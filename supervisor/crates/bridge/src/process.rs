//! The child: how it is started and ended.

use std::ffi::{OsStr, OsString};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;
use std::{fmt, io};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::environment::program_environment;
use crate::logging;

/// Reports that the program has ended, `phase` being how far it was. Returns the bridge's exit code.
pub fn report_exit(program: &str, phase: impl fmt::Display, ended: io::Result<ExitStatus>) -> ExitCode {
    let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
    logging::error(format_args!(
        "the plugin's program {program} ended {phase} ({how}), and its bridge ends with it"
    ));
    ExitCode::FAILURE
}

/// A command for the program, in a separate process group: the bridge decides when the program ends, and asks
/// the children of a wrapper script, too. Dropping the child kills it.
#[must_use]
pub fn command(program: &OsStr, args: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(program_environment()).process_group(0).kill_on_drop(true);
    command
}

/// A step of ending a child: a signal to its process group, or none where it was asked in another way, and
/// how long it may take then.
pub type EndStep = (Option<Signal>, Duration);

/// How a child exited.
#[derive(Debug)]
pub struct ChildExit {
    /// Its exit status.
    pub status: io::Result<ExitStatus>,
    /// Whether it ended without any signal of ours.
    pub unprompted: bool,
    /// Whether it was killed, since it ignored all steps.
    pub killed: bool,
}

/// Ends a child: step by step, and by SIGKILL after the last one.
pub async fn end(child: &mut Child, steps: &[EndStep]) -> ChildExit {
    let mut unprompted = true;
    for (signal, grace) in steps {
        if let Some(signal) = signal {
            unprompted = false;
            signal_group(child, *signal);
        }
        if let Ok(status) = timeout(*grace, child.wait()).await {
            return ChildExit { status, unprompted, killed: false };
        }
    }
    signal_group(child, Signal::KILL);
    ChildExit { status: child.wait().await, unprompted: false, killed: true }
}

fn signal_group(child: &Child, signal: Signal) {
    // It was not reaped yet, so the pid is still valid; if it has ended already, that is fine.
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process_group(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Child {
        let args = ["-c".into(), script.into()];
        command(OsStr::new("/bin/sh"), &args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[tokio::test]
    async fn a_child_ends_at_the_first_step_that_it_heeds() {
        let mut child = shell("read line");
        drop(child.stdin.take());
        let ended = end(&mut child, &[(None, SOON), (Some(Signal::TERM), SOON)]).await;
        assert!(ended.unprompted && !ended.killed && ended.status.is_ok(), "{ended:?}");
        let mut child = shell("sleep 1000");
        let ended = end(&mut child, &[(None, Duration::from_millis(1)), (Some(Signal::TERM), SOON)]).await;
        assert!(!ended.unprompted && !ended.killed, "{ended:?}");
    }

    #[tokio::test]
    async fn a_child_that_heeds_no_signal_is_killed() {
        use tokio::io::AsyncReadExt as _;

        let mut child = shell("trap '' INT; echo ready; while :; do sleep 1000; done");
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).await.unwrap();
        let ended = end(&mut child, &[(Some(Signal::INT), Duration::from_millis(1))]).await;
        assert!(ended.killed && !ended.status.unwrap().success());
    }
}
