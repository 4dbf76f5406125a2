//! Connects a jailed command with the terminal: copies its output and forwards signals.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use talon_jail::{ExitStatus, Monitor};
use talon_sanitize::Raw;

/// Signals that are forwarded to the command instead of ending this process.
const FORWARDED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// How much of a line is looked at together: more than any line of a message that a person reads.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// How long to wait after everything was killed. The kernel needs milliseconds; a process that hangs on a
/// disk must not block this one.
const GONE_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Receives signals through a descriptor. Create it before any other thread, so that all threads block these
/// signals.
pub(crate) struct SignalRelay {
    set: SigSet,
    incoming: SignalFd,
}

impl SignalRelay {
    pub(crate) fn install() -> io::Result<Self> {
        let set: SigSet = FORWARDED.into_iter().collect();
        set.thread_block()?;
        let incoming = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { set, incoming })
    }

    /// Waits until the command exits. Forwards the first signal; kills the command on the second one.
    fn wait(&self, monitor: &Monitor) -> io::Result<ExitStatus> {
        let mut passed_on = false;
        loop {
            if let Some(status) = monitor.try_exit_status()? {
                return Ok(status);
            }
            let control = monitor.control();
            let mut polled = [
                PollFd::new(&control, PollFlags::IN),
                PollFd::from_borrowed_fd(self.incoming.as_fd(), PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut polled, None))?;
            while let Some(signal) = self.incoming.read_signal()? {
                match i32::try_from(signal.ssi_signo) {
                    Ok(number) if !passed_on => monitor.signal(number)?,
                    _ => monitor.kill_all()?,
                }
                passed_on = true;
            }
        }
    }
}

impl SignalRelay {
    /// Waits until the command has exited, all of its output is copied, and all of its processes are gone.
    pub(crate) fn finish(
        self,
        monitor: &Monitor,
        copies: impl IntoIterator<Item = JoinHandle<()>>,
    ) -> io::Result<ExitStatus> {
        let status = self.wait(monitor)?;
        drop(self);
        for copy in copies {
            // A copy thread that panicked has printed why; the exit status stays.
            let _ = copy.join();
        }
        wait_until_gone(monitor)?;
        Ok(status)
    }
}

impl Drop for SignalRelay {
    /// Unblocks the signals, so that they end this process again: it may still be waiting for a pager.
    fn drop(&mut self) {
        let _ = self.set.thread_unblock();
    }
}

/// Waits until all processes of the command are gone, but not longer than [`GONE_TIMEOUT`].
fn wait_until_gone(monitor: &Monitor) -> io::Result<()> {
    let pidfd = monitor.pidfd();
    let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
    retry_on_intr(|| poll(&mut polled, Some(&GONE_TIMEOUT)))?;
    monitor.reap().map(drop)
}

/// Copies the command's output for people: whatever acts on a terminal is written out. A line of more than
/// [`MAX_LINE_BYTES`] is copied in pieces.
pub(crate) fn copy_text(from: OwnedFd, mut to: impl Write + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut from = BufReader::new(File::from(from));
    std::thread::Builder::new().name("output".into()).spawn(move || {
        let mut line = Vec::new();
        while from.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if to.write_all(Raw::from_bytes(&line).terminal_text().as_bytes()).is_err() {
                return;
            }
            line.clear();
        }
        let _ = to.flush();
    })
}

/// Copies the command's output unchanged to one of our own outputs. If the reader closes that, closes the
/// command's pipe, so that the command gets EPIPE.
pub(super) fn copy(from: OwnedFd, to: impl AsFd) -> io::Result<JoinHandle<()>> {
    let mut to = File::from(to.as_fd().try_clone_to_owned()?);
    std::thread::Builder::new().name("output".into()).spawn(move || {
        let _ = io::copy(&mut File::from(from), &mut to);
    })
}
