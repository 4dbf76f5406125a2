//! `run`: one command, from its start until all its processes have ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use talon_sdk::{Context, OrToolError, Output, ToolError};
use tokio::process::{Child, Command};

use crate::settings::Scratch;
use crate::truncated_output::TruncatedOutput;

/// The longest command, in bytes: what Linux takes as one argument, less a little.
const MAX_COMMAND_BYTES: usize = 100 << 10;
/// The most time that can be asked for.
const MAX_SECONDS: u16 = 300;
/// The part of the call's time that is reserved for reporting the result.
const REPORT_MARGIN: Duration = Duration::from_secs(1);
/// How long outputs are still read after the command ended: processes outside its group may hold them open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

#[talon_sdk::args]
pub(crate) struct Run {
    /// What `/bin/sh -c` is given.
    command: String,
    /// How long it may take, up to 300.
    #[serde(default = "half_a_minute")]
    timeout_seconds: u16,
}

fn half_a_minute() -> u16 {
    30
}

/// The result of a command.
#[derive(Debug, Serialize)]
struct RunResult {
    /// Nothing if it was killed.
    exit_code: Option<i32>,
    /// The signal that killed it.
    signal: Option<i32>,
    /// Whether its time limit passed.
    timed_out: bool,
    stdout: String,
    stderr: String,
}

/// Runs a shell command and gives its exit code and output.
#[talon_sdk::tool]
pub(crate) async fn run(args: Run, cx: Context) -> Result<Output, ToolError> {
    if args.command.is_empty() || args.command.len() > MAX_COMMAND_BYTES || args.command.contains('\0') {
        let most = MAX_COMMAND_BYTES;
        return Err(ToolError::new(format!("a command has 1 to {most} bytes and no zero byte")));
    }
    if args.timeout_seconds == 0 || args.timeout_seconds > MAX_SECONDS {
        return Err(ToolError::new(format!("timeout_seconds: 1 to {MAX_SECONDS}")));
    }
    let asked = Duration::from_secs(args.timeout_seconds.into());
    let time = time_limit(asked, cx.remaining());
    let scratch = cx.shared::<Scratch>()?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", &args.command])
        .current_dir(&scratch.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .or_tool_error("the shell cannot be started")?;
    let group = ProcessGroup::of(&child)?;
    let (mut stdout, mut stderr) = (TruncatedOutput::default(), TruncatedOutput::default());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let mut timed_out = false;
    let status = {
        let reading = async {
            tokio::join!(
                async {
                    if let Some(out) = out {
                        stdout.read(out, |line| cx.output(line)).await
                    }
                },
                async {
                    if let Some(err) = err {
                        stderr.read(err, |line| cx.output(line)).await
                    }
                },
            );
        };
        tokio::pin!(reading);
        let ended = async {
            tokio::select! {
                ended = child.wait() => ended,
                () = tokio::time::sleep(time) => {
                    timed_out = true;
                    group.kill();
                    child.wait().await
                }
            }
        };
        tokio::pin!(ended);
        let mut all_read = false;
        let status = tokio::select! {
            status = &mut ended => status,
            // It closed its outputs, but may still run.
            () = &mut reading => {
                all_read = true;
                ended.await
            }
        };
        // Its background processes end with it, and then the outputs do.
        group.kill();
        if !all_read {
            let _ = tokio::time::timeout(OUTPUT_DRAIN_TIMEOUT, reading).await;
        }
        status
    };
    let status = status.or_tool_error("what came of the command cannot be known")?;
    answer(status, timed_out, &mut stdout, &mut stderr, time)
}

/// The time limit: the requested one, unless the call itself ends before.
fn time_limit(asked: Duration, left: Option<Duration>) -> Duration {
    left.map_or(asked, |left| asked.min(left.saturating_sub(REPORT_MARGIN)))
}

fn answer(
    status: ExitStatus,
    timed_out: bool,
    stdout: &mut TruncatedOutput,
    stderr: &mut TruncatedOutput,
    time: Duration,
) -> Result<Output, ToolError> {
    let ran = RunResult {
        exit_code: status.code(),
        signal: status.signal(),
        timed_out,
        stdout: stdout.text(),
        stderr: stderr.text(),
    };
    let how = match (ran.timed_out, ran.exit_code, ran.signal) {
        (true, ..) => format!("killed after {:.0} s", time.as_secs_f64()),
        (_, Some(code), _) => format!("exit code {code}"),
        (_, _, signal) => format!("killed by signal {}", signal.unwrap_or_default()),
    };
    let mut text = how;
    for (name, output) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        if !output.is_empty() {
            text.push_str(&format!("\n{name}:\n{output}"));
        }
    }
    Output::text(text).structured(ran)
}

/// The processes of one command, killed when this is dropped: a cancelled call drops it.
struct ProcessGroup(Pid);

impl ProcessGroup {
    fn of(child: &Child) -> Result<Self, ToolError> {
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        pid.map(Self).or_tool_error("the shell ended before it began")
    }

    fn kill(&self) {
        // The process group id stays valid while one process of the group is left; with none left there is
        // nothing to kill.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_before_its_call_does() {
        let seconds = Duration::from_secs;
        assert_eq!(time_limit(seconds(30), None), seconds(30));
        assert_eq!(time_limit(seconds(30), Some(seconds(60))), seconds(30));
        assert_eq!(time_limit(seconds(30), Some(seconds(10))), seconds(10) - REPORT_MARGIN);
        assert_eq!(time_limit(seconds(30), Some(REPORT_MARGIN / 2)), Duration::ZERO);
    }
}
