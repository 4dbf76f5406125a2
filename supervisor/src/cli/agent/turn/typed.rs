//! One line from the terminal, while other things go on.
//!
//! Reading a terminal blocks, and a thread that blocks cannot be told to stop. So it waits for the terminal and for our word at
//! once, and reads only what is there: a question that somebody else answered takes no line from what is typed next.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

/// More than a line of a terminal can be, which is 4096 bytes in the kernel.
const LINE_BYTES: usize = 4096;

/// Forgets what was typed so far: it cannot have been meant for a question that is asked only now.
pub(in crate::cli::agent) fn forget() {
    // What is no terminal has nothing that was typed.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// A line that is waited for. Dropping it ends the wait.
pub(in crate::cli::agent) struct Typed {
    line: oneshot::Receiver<io::Result<Option<String>>>,
    /// Its end is our word.
    _stop: OwnedFd,
}

impl Typed {
    /// Begins to wait for a line on stdin.
    pub(in crate::cli::agent) fn begin() -> io::Result<Self> {
        let (told, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (says, line) = oneshot::channel();
        std::thread::Builder::new().name("typed".to_owned()).spawn(move || {
            // Who asked may be gone.
            let _ = says.send(read(&told));
        })?;
        Ok(Self { line, _stop: stop })
    }

    /// The line; `None` at the end of the input. Can be asked again if it was not there yet.
    pub(in crate::cli::agent) async fn line(&mut self) -> io::Result<Option<String>> {
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
