//! Between a jailed command and the terminal: its output comes through, and signals go to it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use talon_jail::{ExitStatus, Monitor};

/// Signals that would end this process and that the command gets instead.
const FORWARDED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Everything has been killed by then, which takes the kernel milliseconds; a disk that hangs can hold a process up,
/// and should not hold us up as well.
const GONE_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Takes signals instead of dying of them. To be made before any other thread, so that none of those does.
pub(super) struct Signals {
    set: SigSet,
    incoming: SignalFd,
}

impl Signals {
    pub(super) fn take() -> io::Result<Self> {
        let set: SigSet = FORWARDED.into_iter().collect();
        set.thread_block()?;
        let incoming = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { set, incoming })
    }

    /// Waits for the command's end. Its first signal is passed on; a second one ends it for certain.
    pub(super) fn wait(&self, monitor: &Monitor) -> io::Result<ExitStatus> {
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

impl Drop for Signals {
    /// From now on they end this process again: it may be waiting for a pager to read on.
    fn drop(&mut self) {
        let _ = self.set.thread_unblock();
    }
}

/// Waits until nothing of the command is left. After [`GONE_TIMEOUT`] what the kernel is still ending is left to it.
pub(super) fn gone(monitor: &Monitor) -> io::Result<()> {
    let pidfd = monitor.pidfd();
    let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
    retry_on_intr(|| poll(&mut polled, Some(&GONE_TIMEOUT)))?;
    monitor.reap().map(drop)
}

/// Copies what comes out of the command to one of our own outputs, byte by byte as it is. When nobody reads that any
/// more, the command's pipe is closed, and it notices.
pub(super) fn copy(from: OwnedFd, to: impl AsFd) -> io::Result<JoinHandle<()>> {
    let mut to = File::from(to.as_fd().try_clone_to_owned()?);
    std::thread::Builder::new().name("output".into()).spawn(move || {
        let _ = io::copy(&mut File::from(from), &mut to);
    })
}
