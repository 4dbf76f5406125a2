//! `talon stop`: orderly shutdown of a supervisor and its plugins.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use talon_proto::host::{GetStatusRequest, ShutdownRequest};
use talon_sanitize::{Raw, sanitized};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// How long to wait for the exit. Calls, plugins and state have consecutive grace periods; anything above a
/// quarter of an hour hangs.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Interval of the message that it is still waiting.
const NOTICE_INTERVAL: Duration = Duration::from_secs(5);
/// How long the service manager may take to list its jobs.
const JOBS_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes to read of the answer: one line per job of a unit.
const MAX_JOBS_BYTES: u64 = 64 << 10;
/// The packaged unit.
const UNIT: &str = "talon.service";
/// The environment variable for the unit's name; a unit file can set it.
const UNIT_VARIABLE: &str = "UNIT";

/// Stop the supervisor and its plugins, and wait until the process is gone.
///
/// New calls are refused, calls in flight may finish within the grace period, then the plugins are stopped,
/// and then the state service. Needs the role admin.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon stop
  talon stop --unless-restarting=talon.service      # for ExecStop= in a unit")]
pub(crate) struct StopArgs {
    /// Do nothing if systemd is restarting this unit, since the plugins should keep running then. Otherwise
    /// $UNIT, then talon.service.
    #[arg(
        long,
        value_name = "UNIT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    unless_restarting: Option<String>,
}

impl StopArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let in_unit = self.unless_restarting.is_some();
        if let Some(unit) = self.unless_restarting {
            let unit = unit_of(unit);
            match is_restarting(&unit).await {
                Ok(false) => {}
                Ok(true) => {
                    out.err_line("it is being restarted: the plugins run on");
                    return Ok(exit::OK);
                }
                // If unsure, prefer a handover without a successor over stopping the plugins in the middle of
                // an upgrade.
                Err(why) => {
                    out.err_line(sanitized!("nothing is stopped: {}", Raw::of(why).line()));
                    return Ok(exit::OK);
                }
            }
        }
        let mut client = match Client::connect(socket).await {
            // It has already exited, as requested.
            Err(failure) if in_unit && failure.code() == exit::UNREACHABLE => return Ok(exit::OK),
            client => client?,
        };
        let status =
            client.host.get_status(GetStatusRequest {}).await.map_err(|status| client.failure(&status))?;
        let pid = status.get_ref().pid;
        // Open the pidfd before the request, so that the pid cannot have been reused.
        let process = open(pid)?;
        client.host.shutdown(ShutdownRequest {}).await.map_err(|status| client.failure(&status))?;
        drop(client);
        out.err_line(sanitized!("stopping the supervisor (pid {}) and its plugins", pid));
        match process {
            Some(process) => wait(process, pid, out).await,
            None => {
                out.err_line("its process is not visible from here: the request was sent, and its exit is not waited for");
                Ok(exit::OK)
            }
        }
    }
}

/// `None` if the process is not visible, for example in another pid namespace.
fn open(pid: u32) -> Result<Option<OwnedFd>, Failure> {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(Failure::failed(format!("cannot watch process {pid}: {error}; try again"))),
    }
}

async fn wait(process: OwnedFd, pid: u32, out: &mut Output) -> Result<u8, Failure> {
    let process = std::sync::Arc::new(process);
    let began = Instant::now();
    while began.elapsed() < EXIT_TIMEOUT {
        let watched = process.clone();
        let gone = tokio::task::spawn_blocking(move || is_gone(&watched)).await;
        match gone {
            Ok(Ok(true)) => {
                out.err_line("stopped");
                return Ok(exit::OK);
            }
            Ok(Ok(false)) => {
                let waited = began.elapsed().as_secs();
                out.err_line(sanitized!("still stopping after {} s", waited));
            }
            Ok(Err(error)) => {
                return Err(Failure::failed(format!(
                    "cannot watch process {pid}: {error}; see `talon status`"
                )));
            }
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
    let waited = EXIT_TIMEOUT.as_secs() / 60;
    Err(Failure::new(
        exit::HOST_FAULT,
        format!("process {pid} is still there after {waited} minutes; look at its log, or kill it"),
    ))
}

/// Waits for a limited time. A pidfd becomes readable when the process exits.
fn is_gone(process: &OwnedFd) -> Result<bool, Errno> {
    let mut waits = [PollFd::new(process, PollFlags::IN)];
    let within = NOTICE_INTERVAL.try_into().map_err(|_| Errno::INVAL)?;
    Ok(retry_on_intr(|| poll(&mut waits, Some(&within)))? > 0)
}

fn unit_of(named: String) -> String {
    let of_process = || std::env::var(UNIT_VARIABLE).ok();
    Some(named)
        .filter(|name| !name.is_empty())
        .or_else(|| of_process().filter(|name| !name.is_empty()))
        .unwrap_or_else(|| UNIT.to_owned())
}

/// Why it is not known what the service manager does with the unit.
#[derive(Debug, thiserror::Error)]
enum JobsError {
    #[error("systemctl cannot be run: {0}")]
    Start(#[source] io::Error),
    #[error("systemctl list-jobs ended with {0}")]
    Status(ExitStatus),
    #[error("systemctl list-jobs cannot be read: {0}")]
    Read(#[source] io::Error),
    #[error("systemctl list-jobs took longer than {} s", JOBS_TIMEOUT.as_secs())]
    Timeout,
}

/// Whether the service manager's current job for the unit is a restart.
async fn is_restarting(unit: &str) -> Result<bool, JobsError> {
    let mut child = Command::new("systemctl")
        .args(["list-jobs", "--no-legend", "--no-pager", "--plain", "--full", "--", unit])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(JobsError::Start)?;
    let answered = timeout(JOBS_TIMEOUT, async {
        let mut jobs = String::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_JOBS_BYTES).read_to_string(&mut jobs).await?;
        }
        Ok::<_, io::Error>((child.wait().await?, jobs))
    });
    match answered.await {
        Ok(Ok((status, jobs))) if status.success() => Ok(has_restart(&jobs, unit)),
        Ok(Ok((status, _))) => Err(JobsError::Status(status)),
        Ok(Err(error)) => Err(JobsError::Read(error)),
        Err(_) => Err(JobsError::Timeout),
    }
}

/// Parses lines of `JOB UNIT TYPE STATE`.
fn has_restart(jobs: &str, unit: &str) -> bool {
    jobs.lines().any(|job| {
        let mut columns = job.split_whitespace().skip(1);
        columns.next() == Some(unit) && matches!(columns.next(), Some("restart" | "try-restart"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HANDOVER-36
    #[test]
    fn only_a_restart_of_this_unit_is_one() {
        let jobs = "  812 talon.service   restart running\n 813 other.service stop waiting\n";
        assert!(has_restart(jobs, "talon.service"));
        assert!(!has_restart(jobs, "other.service"));
        assert!(!has_restart(" 812 talon.service stop running", "talon.service"));
        assert!(!has_restart("No jobs listed.\n", "talon.service"));
        assert!(!has_restart("", "talon.service"));
    }

    #[test]
    fn a_unit_that_is_named_comes_first() {
        assert_eq!(unit_of("my.service".to_owned()), "my.service");
    }
}
