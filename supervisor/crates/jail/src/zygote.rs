//! The supervisor's side of its zygote: the one stage that was executed, and of which all others are clones.
//!
//! Executing an image costs as much as all else that a start does: the dynamic loader, relocations, and in a virtual
//! machine each question of the loader about the processor. A clone of a small process that has one thread costs a
//! tenth of that, and shares its memory with all the others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::graveyard;
use crate::wire::{self, Call};

/// How long one that was killed may take to end. It only has to be buried, so that one second is a thousand times
/// what it needs; after it, it is left to be reaped later.
const END: Duration = Duration::from_secs(1);

/// A running zygote. It ends with its socket, and is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Zygote {
    pidfd: OwnedFd,
    socket: OwnedFd,
}

impl Zygote {
    fn start(mut command: Command) -> io::Result<Self> {
        let (socket, theirs) = wire::pair()?;
        let mut child =
            command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        // It is not reaped before its pidfd is there, so that the number is still its own.
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { pidfd, socket }),
            Err(errno) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(errno.into())
            }
        }
    }

    /// Hands over a call. Waits while the socket is full: the zygote is busy with as many others then.
    fn call(&self, call: &Call, descriptors: &[BorrowedFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
        loop {
            match wire::send(self.socket.as_fd(), call, descriptors) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !ready(self.socket.as_fd(), PollFlags::OUT, left(deadline))? {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                other => return other,
            }
        }
    }

    /// Kills it and waits for that.
    fn end(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = ready(self.pidfd.as_fd(), PollFlags::IN, END);
        let _ = graveyard::reap(self.pidfd.as_fd());
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // It has no state, so that nothing is lost by not letting it end by itself.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        if let Ok(pidfd) = self.pidfd.try_clone() {
            graveyard::bury(pidfd);
        }
    }
}

/// The zygote of a stage's image: started by the first call, and again when it is gone.
#[derive(Debug, Default)]
pub(crate) struct Nursery(Mutex<Option<Arc<Zygote>>>);

impl Nursery {
    /// Has a stage born that gets these descriptors; gives who was asked.
    pub(crate) fn call(
        &self,
        command: impl Fn() -> Command,
        call: &Call,
        descriptors: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<Arc<Zygote>> {
        let zygote = self.zygote(&command)?;
        match zygote.call(call, descriptors, deadline) {
            Err(error) if is_gone(&error) => {
                self.discard(&zygote);
                let another = self.zygote(&command)?;
                another.call(call, descriptors, deadline).map(|()| another)
            }
            other => other.map(|()| zygote),
        }
    }

    /// Ends one that did not do what it was asked for; the next call starts another.
    pub(crate) fn discard(&self, zygote: &Arc<Zygote>) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, zygote)) {
            *current = None;
        }
        drop(current);
        zygote.end();
    }

    fn zygote(&self, command: impl Fn() -> Command) -> io::Result<Arc<Zygote>> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zygote) = &*current {
            return Ok(Arc::clone(zygote));
        }
        let zygote = Arc::new(Zygote::start(command())?);
        *current = Some(Arc::clone(&zygote));
        Ok(zygote)
    }
}

/// Whether the other end of a socket has closed.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::PIPE | Errno::CONNRESET))
}

/// What is left until a time; a time that the clock cannot hold is one that nobody waits for.
pub(crate) fn left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
}

/// Waits until a descriptor is ready, or closed at its other end; false when the time is over.
pub(crate) fn ready(descriptor: BorrowedFd<'_>, wanted: PollFlags, timeout: Duration) -> io::Result<bool> {
    // A timeout that the kernel's type cannot hold is one that nobody waits for.
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::from_borrowed_fd(descriptor, wanted)];
    match retry_on_intr(|| poll(&mut polled, timeout.as_ref())) {
        Ok(ready) => Ok(ready > 0),
        Err(errno) => Err(errno.into()),
    }
}
