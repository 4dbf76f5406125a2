//! Reads one line from the terminal without blocking the rest of the program.
//!
//! A thread that blocks in a read cannot be cancelled. So it polls the terminal together with a stop
//! descriptor, and reads only when input is available: a question that was answered elsewhere does not
//! consume the next typed line.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

/// The longest line that a terminal delivers: 4096 bytes in the kernel.
const LINE_BYTES: usize = 4096;

/// Discards pending input: it was typed before the question appeared.
pub(in crate::client::agent) fn discard_pending_input() {
    // Without a terminal there is no pending input.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// A pending read of one line. Dropping it cancels the read.
pub(in crate::client::agent) struct LineInput {
    line: oneshot::Receiver<io::Result<Option<String>>>,
    /// Closing it stops the thread.
    _stop: OwnedFd,
}

impl LineInput {
    /// Starts to wait for a line on stdin.
    pub(in crate::client::agent) fn start() -> io::Result<Self> {
        let (told, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (says, line) = oneshot::channel();
        std::thread::Builder::new().name("typed".to_owned()).spawn(move || {
            // The receiver may have been dropped.
            let _ = says.send(read(&told));
        })?;
        Ok(Self { line, _stop: stop })
    }

    /// The line; `None` at the end of the input. Cancel-safe: may be called again.
    pub(in crate::client::agent) async fn line(&mut self) -> io::Result<Option<String>> {
        match (&mut self.line).await {
            Ok(line) => line,
            Err(_) => Err(io::Error::other("the thread that reads the terminal ended")),
        }
    }
}

fn read(told: &OwnedFd) -> io::Result<Option<String>> {
    let stdin = io::stdin();
    loop {
        let mut waits = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(told, PollFlags::IN)];
        retry_on_intr(|| poll(&mut waits, None))?;
        if !waits[1].revents().is_empty() {
            return Ok(None);
        }
        if waits[0].revents().is_empty() {
            continue;
        }
        let mut line = [0; LINE_BYTES];
        return match rustix::io::read(&stdin, &mut line) {
            Ok(0) => Ok(None),
            Ok(read) => Ok(Some(String::from_utf8_lossy(&line[..read]).into_owned())),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => Err(error.into()),
        };
    }
}
