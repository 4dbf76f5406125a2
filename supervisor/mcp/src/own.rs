//! A supervisor for this client: started when nobody answers on the socket, and ended with this process.
//!
//! Its standard input is a pipe of which we hold the other end. However this process ends, the kernel closes that, and the
//! supervisor sees it.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

/// How `talon` ends when another supervisor holds the directory, which answers soon, or has just stopped to.
const BUSY: i32 = 8;
/// How often a supervisor may end before it was of use. What stands in its way is on standard error; with the waits between
/// the tries it is given half a minute, in which one that is just ending is gone.
const MAX_TRIES: u32 = 10;

/// How to have a supervisor, where there may be need for one.
#[derive(Debug)]
pub(crate) struct Own {
    command: Option<Command>,
    running: Option<Child>,
    tries: u32,
}

impl Own {
    /// Without a command there is never a need.
    pub(crate) fn new(words: Vec<OsString>) -> Self {
        let mut words = words.into_iter();
        let command = words.next().map(|program| {
            let mut command = Command::new(program);
            // Its log goes where ours goes. Standard output belongs to the protocol.
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(false);
            command
        });
        Self { command, running: None, tries: 0 }
    }

    /// The supervisor was of use: what happens to it from now on is another story.
    pub(crate) fn met(&mut self) {
        self.tries = 0;
    }

    /// Called when nobody answers: sees to it that somebody will.
    ///
    /// # Errors
    /// Why that is hopeless.
    pub(crate) fn see_to_it(&mut self) -> Result<(), String> {
        let Some(command) = &mut self.command else { return Ok(()) };
        if let Some(child) = &mut self.running {
            match child.try_wait() {
                Ok(None) => return Ok(()),
                Ok(Some(status)) if status.code() != Some(BUSY) && self.tries > 0 => {
                    return Err(ended(status));
                }
                Ok(Some(status)) if self.tries >= MAX_TRIES => return Err(ended(status)),
                Ok(Some(_)) => {}
                Err(error) => return Err(format!("cannot watch the supervisor of our own: {error}")),
            }
        }
        self.tries += 1;
        tracing::info!(tries = self.tries, "starting a supervisor for this client");
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start a supervisor: {error}; install talon again"))?;
        self.running = Some(child);
        Ok(())
    }
}

fn ended(status: ExitStatus) -> String {
    format!("the supervisor for this client cannot run ({status}): what it said about it stands above")
}
