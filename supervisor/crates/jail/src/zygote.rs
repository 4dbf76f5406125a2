//! The supervisor's side of its zygote: the executed stage of which all others are clones.
//!
//! Executing an image costs as much as the rest of a start: the dynamic loader, relocations, and in a virtual
//! machine each CPU query of the loader. Cloning a small single-threaded process costs a tenth of that, and
//! its memory is shared by all clones.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::reaper;
use crate::wire::{self, StageRequest};

/// How long a killed zygote may take to end. It only has to exit, so one second is a thousand times what it
/// needs. After that, it is left to be reaped later.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A running zygote. It ends when its socket is closed, and is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Zygote {
    pidfd: OwnedFd,
    socket: OwnedFd,
}

impl Zygote {
    fn start(mut command: Command) -> io::Result<Self> {
        let (socket, theirs) = wire::socket_pair()?;
        let mut child =
            command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // It is not reaped before its pidfd is open, so the pid is still its own.
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { pidfd, socket }),
            Err(errno) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(errno.into())
            }
        }
    }

    /// Sends a request. Waits while the socket is full, when the zygote is busy with other requests.
    fn call(
        &self,
        call: &StageRequest,
        descriptors: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        loop {
            match wire::send(self.socket.as_fd(), call, descriptors) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !wait_ready(self.socket.as_fd(), PollFlags::OUT, remaining(deadline))? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                other => return other,
            }
        }
    }

    /// Kills it and waits for its end.
    fn end(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = wait_ready(self.pidfd.as_fd(), PollFlags::IN, EXIT_TIMEOUT);
        let _ = reaper::reap(self.pidfd.as_fd());
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // It has no state, so killing it loses nothing.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        if let Ok(pidfd) = self.pidfd.try_clone() {
            reaper::reap_later(pidfd);
        }
    }
}

/// The zygote of a stage's image: started by the first request, and again when it is gone.
#[derive(Debug, Default)]
pub(crate) struct ZygoteSlot(Mutex<Option<Arc<Zygote>>>);

impl ZygoteSlot {
    /// Requests a stage that gets these descriptors; returns the zygote that was asked.
    pub(crate) fn call(
        &self,
        command: impl Fn() -> Command,
        call: &StageRequest,
        descriptors: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<Arc<Zygote>> {
        let zygote = self.zygote(&command)?;
        match zygote.call(call, descriptors, deadline) {
            Err(error) if is_disconnected(&error) => {
                self.discard(&zygote);
                let another = self.zygote(&command)?;
                another.call(call, descriptors, deadline).map(|()| another)
            }
            other => other.map(|()| zygote),
        }
    }

    /// Ends a zygote that did not do what was requested; the next request starts another.
    pub(crate) fn discard(&self, zygote: &Arc<Zygote>) {
        let mut current = self.0.lock();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, zygote)) {
            *current = None;
        }
        drop(current);
        zygote.end();
    }

    fn zygote(&self, command: impl Fn() -> Command) -> io::Result<Arc<Zygote>> {
        let mut current = self.0.lock();
        if let Some(zygote) = &*current {
            return Ok(Arc::clone(zygote));
        }
        let zygote = Arc::new(Zygote::start(command())?);
        *current = Some(Arc::clone(&zygote));
        Ok(zygote)
    }
}

/// Whether an error means that the other end of the socket has closed.
pub(crate) fn is_disconnected(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::PIPE | Errno::CONNRESET))
}

/// The time left until a deadline; a deadline that the clock cannot represent means no limit.
pub(crate) fn remaining(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
}

/// Waits until a descriptor is ready, or closed at its other end; false after the timeout.
pub(crate) fn wait_ready(
    descriptor: BorrowedFd<'_>,
    events: PollFlags,
    timeout: Duration,
) -> io::Result<bool> {
    // A timeout that the kernel's type cannot represent means no timeout.
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::from_borrowed_fd(descriptor, events)];
    match retry_on_intr(|| poll(&mut polled, timeout.as_ref())) {
        Ok(ready) => Ok(ready > 0),
        Err(errno) => Err(errno.into()),
    }
}
