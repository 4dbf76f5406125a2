//! A private supervisor for this client: started if none listens on the socket, and stopped with this
//! process.
//!
//! Its standard input is a pipe whose other end this process holds. However this process ends, the kernel
//! closes the pipe, and the supervisor exits.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::Instant;

/// The exit code of `talon` if another supervisor uses the directory: that one will answer soon, or is just
/// exiting.
const BUSY: i32 = 8;
/// For how long a supervisor may exit because another one uses the directory: enough for that one to finish
/// exiting. Its errors are on standard error.
const MAX_BUSY_TIME: Duration = Duration::from_secs(30);

/// Why there will be no private supervisor.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateSupervisorError {
    /// Its program cannot be started.
    #[error("cannot start a supervisor: {0}; install talon again")]
    Start(#[source] io::Error),
    /// The system does not say whether it runs.
    #[error("cannot watch the supervisor for this client: {0}; start this program again")]
    Watch(#[source] io::Error),
    /// It ends again and again.
    #[error("the supervisor for this client cannot run ({0}): see its own messages above")]
    Ended(ExitStatus),
}

/// How to start a supervisor, if one is needed.
#[derive(Debug)]
pub(crate) struct PrivateSupervisor {
    command: Option<Command>,
    running: Option<Child>,
    /// The first start since a supervisor was reachable.
    started_at: Option<Instant>,
}

impl PrivateSupervisor {
    /// Without a command, no supervisor is ever started.
    pub(crate) fn new(words: Vec<OsString>) -> Self {
        let mut words = words.into_iter();
        let command = words.next().map(|program| {
            let mut command = Command::new(program);
            // Its log goes to our standard error. Standard output belongs to the protocol.
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(false);
            command
        });
        Self { command, running: None, started_at: None }
    }

    /// The supervisor was reachable: an earlier start has not failed.
    pub(crate) fn mark_connected(&mut self) {
        self.started_at = None;
    }

    /// Starts a supervisor unless one is running; called if none answers.
    ///
    /// # Errors
    /// Why further attempts are useless.
    pub(crate) fn ensure_running(&mut self) -> Result<(), PrivateSupervisorError> {
        let Some(command) = &mut self.command else { return Ok(()) };
        if let Some(child) = &mut self.running {
            let status = match child.try_wait() {
                Ok(None) => return Ok(()),
                Ok(Some(status)) => status,
                Err(error) => return Err(PrivateSupervisorError::Watch(error)),
            };
            let may_be_free = status.code() == Some(BUSY);
            if self.started_at.is_some_and(|at| !may_be_free || at.elapsed() >= MAX_BUSY_TIME) {
                return Err(PrivateSupervisorError::Ended(status));
            }
        }
        self.started_at.get_or_insert_with(Instant::now);
        tracing::info!("starting a supervisor for this client");
        let child = command.spawn().map_err(PrivateSupervisorError::Start)?;
        self.running = Some(child);
        Ok(())
    }
}
