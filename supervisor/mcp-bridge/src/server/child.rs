//! The server's process: started, monitored, and ended as MCP requires: its standard input is closed, then it gets
//! SIGTERM, then it is killed.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child as Process, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::environment;

/// How long the server may take to end once its standard input is closed. Together with the next one well within the
/// grace period that the supervisor gives the bridge.
const CLOSED_GRACE: Duration = Duration::from_secs(2);
/// How long it may take after SIGTERM.
const TERMINATED_GRACE: Duration = Duration::from_secs(2);
/// How long the whole shutdown may take, with some time for the kernel to kill it.
pub(crate) const END_GRACE: Duration =
    CLOSED_GRACE.saturating_add(TERMINATED_GRACE).saturating_add(Duration::from_secs(1));
/// How long its last output may take to be passed on after it ended.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest line on standard error; the supervisor cuts at the same length.
const MAX_LINE_BYTES: u64 = 8000;

/// A server's process.
#[derive(Clone)]
pub(crate) struct Child {
    ended: watch::Receiver<Option<String>>,
    /// Closes its standard input, and ends it.
    pub(crate) closing: Shutdown,
}

/// A shutdown that the bridge initiates.
#[derive(Clone, Default)]
pub(crate) struct Shutdown {
    token: CancellationToken,
    /// The misbehaviour that it is ended for.
    why: Arc<OnceLock<String>>,
}

impl Shutdown {
    /// Ends it because it is no longer needed.
    pub(crate) fn close(&self) {
        self.token.cancel();
    }

    /// Ends it because of misbehaviour: `why` describes it and follows the server's name.
    pub(crate) fn give_up(&self, why: String) {
        // A second reason would only be a consequence of the first.
        let _ = self.why.set(why);
        self.token.cancel();
    }

    /// Waits until the shutdown begins.
    pub(crate) async fn closed(&self) {
        self.token.cancelled().await;
    }

    /// Whether it ends without misbehaviour, on our request.
    pub(crate) fn is_expected(&self) -> bool {
        self.token.is_cancelled() && self.why.get().is_none()
    }
}

/// The pipes to it.
pub(crate) struct Pipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
}

impl Child {
    /// Starts a server. Its standard error is passed to ours.
    pub(crate) fn start(program: &OsString, args: &[OsString]) -> io::Result<(Self, Pipes)> {
        let mut process = Command::new(program)
            .args(args)
            .env_clear()
            .envs(environment::server_environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A separate process group, so that the children of a wrapper script are asked to end, too.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output), Some(errors)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("it has no pipes"));
        };
        let errors = errors.into_owned_fd()?;
        // A separate thread, because writing to standard error blocks when the supervisor reads slowly.
        let passed_on = CancellationToken::new();
        let done = passed_on.clone().drop_guard();
        std::thread::Builder::new().name("server-stderr".to_owned()).spawn(move || {
            pass_on(std::fs::File::from(errors), io::stderr());
            drop(done);
        })?;
        let closing = Shutdown::default();
        let (sender, ended) = watch::channel(None);
        tokio::spawn(supervise(process, closing.clone(), passed_on, sender));
        Ok((Self { ended, closing }, Pipes { input, output }))
    }

    /// How it ended, if it ends within this time.
    pub(crate) async fn ended_within(&self, time: Duration) -> Option<String> {
        let mut ended = self.ended.clone();
        timeout(time, ended.wait_for(Option::is_some)).await.ok()?.ok()?.clone()
    }

    /// Waits until it has ended.
    pub(crate) fn exited(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            // The sender is dropped early only when the runtime ends.
            let _ = ended.wait_for(Option::is_some).await;
        }
    }

    /// Ends it, and waits until it is gone.
    pub(crate) async fn stop(&self) {
        self.closing.close();
        self.ended_within(END_GRACE).await;
    }
}

async fn supervise(
    mut process: Process,
    closing: Shutdown,
    passed_on: CancellationToken,
    ended: watch::Sender<Option<String>>,
) {
    let (status, by_us) = tokio::select! {
        biased;
        status = process.wait() => (status, false),
        () = closing.closed() => terminate(&mut process).await,
    };
    let report = match (status, closing.why.get().filter(|_| by_us)) {
        (Ok(status), Some(why)) => format!("{why}, and {}", described(status)),
        (Ok(status), None) => described(status),
        (Err(error), _) => format!("ended, and its exit status is unknown: {error}"),
    };
    // Its last output is passed on before our message about it, unless another process holds its standard error.
    let _ = timeout(STDERR_DRAIN_TIMEOUT, passed_on.cancelled()).await;
    ended.send_replace(Some(report));
}

/// How it ended, and whether it had to be forced.
async fn terminate(process: &mut Process) -> (io::Result<ExitStatus>, bool) {
    let mut by_us = false;
    for (signal, grace) in [(Signal::TERM, CLOSED_GRACE), (Signal::KILL, TERMINATED_GRACE)] {
        if let Ok(status) = timeout(grace, process.wait()).await {
            return (status, by_us);
        }
        by_us = true;
        // It was not reaped yet, so the pid is still valid.
        if let Some(pid) = process.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            let _ = kill_process_group(pid, signal);
        }
    }
    (process.wait().await, by_us)
}

fn described(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended: {status}"),
    }
}

/// Copies lines, each with one write, so that they do not mix with ours. Ends with the pipe.
fn pass_on(errors: impl Read, mut to: impl Write) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    let mut within = false;
    loop {
        line.clear();
        match errors.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let ends = line.ends_with(b"\n");
        // The rest of a line that was too long means nothing alone.
        if !within {
            if !ends {
                line.push(b'\n');
            }
            // When our own standard error is gone there is nowhere to report the error.
            let _ = to.write_all(&line);
        }
        within = !ends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_cut_and_whole() {
        let mut said = b"one\n".to_vec();
        said.extend(vec![b'x'; 50_000]);
        said.extend(b"\ntwo\nlast");
        let mut passed = Vec::new();
        pass_on(said.as_slice(), &mut passed);
        let lines: Vec<_> = passed.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 5);
        assert_eq!((lines[0], lines[2], lines[3]), (&b"one"[..], &b"two"[..], &b"last"[..]));
        assert_eq!(lines[1].len() as u64, MAX_LINE_BYTES);
    }

    #[tokio::test]
    async fn a_server_ends_when_its_input_is_closed() {
        let (child, pipes) = Child::start(&"/bin/cat".into(), &[]).expect("cat starts");
        assert_eq!(child.ended_within(Duration::ZERO).await, None);
        drop(pipes);
        child.stop().await;
        assert_eq!(child.ended_within(Duration::ZERO).await.as_deref(), Some("ended with exit code 0"));
    }

    #[tokio::test]
    async fn a_server_that_does_not_exist_is_an_error() {
        assert!(Child::start(&"/nowhere/server".into(), &[]).is_err());
    }
}
