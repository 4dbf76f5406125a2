//! The server's process: started, monitored, and ended as MCP requires: its standard input is closed, then it
//! gets SIGTERM, then it is killed.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::Signal;
use talon_bridge::process::EndStep;
use talon_bridge::{output, process};
use tokio::process::{Child as Process, ChildStdin, ChildStdout};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::import_failure::{ImportFailure, ImportLog};
use super::probe_log::ProbeLog;

/// How long the server may take to end once its standard input is closed. Together with the next one well
/// within the grace period that the supervisor gives the bridge.
const CLOSED_GRACE: Duration = Duration::from_secs(2);
/// How long it may take after SIGTERM.
const TERMINATED_GRACE: Duration = Duration::from_secs(2);
/// How long the whole shutdown may take, with some time for the kernel to kill it.
pub(crate) const END_GRACE: Duration =
    CLOSED_GRACE.saturating_add(TERMINATED_GRACE).saturating_add(Duration::from_secs(1));
/// How it is ended, its standard input being closed.
const STEPS: [EndStep; 2] = [(None, CLOSED_GRACE), (Some(Signal::TERM), TERMINATED_GRACE)];

/// A server's process.
#[derive(Clone)]
pub(crate) struct Child {
    ended: watch::Receiver<Option<String>>,
    /// Whether its code cannot be loaded.
    pub(crate) import_failure: ImportFailure,
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
        let mut process = process::command(program, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output), Some(errors)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("it has no pipes"));
        };
        let import_failure = ImportFailure::default();
        let failure = import_failure.clone();
        let drained = output::spawn_reader("server-stderr", errors.into_owned_fd()?, |mut errors| {
            let mut log = ProbeLog::new(ImportLog { to: io::stderr(), failure });
            output::forward_lines(&mut errors, &mut log);
            // If there is no reader, there is nowhere to report the error.
            let _ = log.flush();
        })?;
        let closing = Shutdown::default();
        let (sender, ended) = watch::channel(None);
        tokio::spawn(supervise(process, closing.clone(), drained, sender));
        Ok((Self { ended, import_failure, closing }, Pipes { input, output }))
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
    drained: oneshot::Receiver<()>,
    ended: watch::Sender<Option<String>>,
) {
    let (status, by_us) = tokio::select! {
        biased;
        status = process.wait() => (status, false),
        () = closing.closed() => {
            let ended = process::end(&mut process, &STEPS).await;
            (ended.status, !ended.unprompted)
        }
    };
    let report = match (status, closing.why.get().filter(|_| by_us)) {
        (Ok(status), Some(why)) => format!("{why}, and {}", described(status)),
        (Ok(status), None) => described(status),
        (Err(error), _) => format!("ended, and its exit status is unknown: {error}"),
    };
    // Its last output is passed on before our message about it, unless another process holds its standard
    // error.
    let _ = timeout(output::DRAIN_TIMEOUT, drained).await;
    ended.send_replace(Some(report));
}

fn described(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
