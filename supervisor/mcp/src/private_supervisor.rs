//! A private supervisor for this client: started if none listens on the socket, and stopped with this
//! process.
//!
//! Its standard input is a pipe whose other end this process holds. However this process ends, the kernel
//! closes the pipe, and the supervisor exits.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

/// The exit code of `talon` if another supervisor uses the directory: that one will answer soon, or is just
/// exiting.
const BUSY: i32 = 8;
/// How many times a supervisor may exit before it was reachable. Its errors are on standard error. With the
/// backoff this is half a minute, enough for another supervisor to finish exiting.
const MAX_TRIES: u32 = 10;

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
    tries: u32,
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
        Self { command, running: None, tries: 0 }
    }

    /// The supervisor was reachable: resets the count of failed starts.
    pub(crate) fn mark_connected(&mut self) {
        self.tries = 0;
    }

    /// Starts a supervisor unless one is running; called if none answers.
    ///
    /// # Errors
    /// Why further attempts are useless.
    pub(crate) fn ensure_running(&mut self) -> Result<(), PrivateSupervisorError> {
        let Some(command) = &mut self.command else { return Ok(()) };
        if let Some(child) = &mut self.running {
            match child.try_wait() {
                Ok(None) => return Ok(()),
                Ok(Some(status)) if status.code() != Some(BUSY) && self.tries > 0 => {
                    return Err(PrivateSupervisorError::Ended(status));
                }
                Ok(Some(status)) if self.tries >= MAX_TRIES => {
                    return Err(PrivateSupervisorError::Ended(status));
                }
                Ok(Some(_)) => {}
                Err(error) => return Err(PrivateSupervisorError::Watch(error)),
            }
        }
        self.tries += 1;
        tracing::info!(tries = self.tries, "starting a supervisor for this client");
        let child = command.spawn().map_err(PrivateSupervisorError::Start)?;
        self.running = Some(child);
        Ok(())
    }
}
