//! The supervisor's side of a monitor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::exit::ExitStatus;
use crate::wire::{self, Note, Order, Received};
use crate::{graveyard, sys};

/// The supervisor's handle on the monitor: pidfd and control socket, whose closing is the lifeline. Dropping it
/// kills everything that the program started.
#[derive(Debug)]
pub struct Monitor {
    pid: u32,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// Of the program, for when the monitor cannot act.
    program: OwnedFd,
    ended: Mutex<Option<ExitStatus>>,
    /// Whether it is somebody else's now.
    released: AtomicBool,
}

impl Monitor {
    pub(crate) fn new(pid: u32, pidfd: OwnedFd, control: OwnedFd, program: OwnedFd) -> Self {
        Self { pid, pidfd, control, program, ended: Mutex::new(None), released: AtomicBool::new(false) }
    }

    /// The monitor's own process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Readable when the monitor has exited: nothing of the program is left then.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Readable when the program's exit was reported, which comes before the monitor's own exit.
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Of the program.
    pub(crate) fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Forgets the program without ending it: from here on dropping the handle kills nothing, and orders do nothing. The
    /// program lives on for as long as somebody else holds what was [shared](Self::share).
    pub fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    /// Sends a standard signal (1 to 31) to the program and its process group. The monitor does it, which is the
    /// program's parent: it knows whether the number is still the program's. A program that has ended already
    /// is no error.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        if Signal::from_named_raw(signal).is_none() {
            let text = format!("{signal} is not the number of a standard signal (1 to 31)");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.order(&Order::Signal(signal))
    }

    /// SIGKILL of everything that the program started, and of itself.
    pub fn kill_all(&self) -> io::Result<()> {
        if self.released.load(Ordering::Acquire) {
            return Ok(());
        }
        // The program is hit from here too: one that has its monitor's uid may have stopped it.
        self.kill_program();
        let ordered = self.order(&Order::KillAll);
        // A stopped monitor goes on and does its work. One that has ended has nothing left to do.
        let _ = pidfd_send_signal(&self.pidfd, Signal::CONT);
        ordered
    }

    /// SIGKILL of the monitor itself, for one that does not do what it was told. In a process namespace everything
    /// dies with it; without one, the program does.
    pub fn kill_monitor(&self) {
        if self.released.load(Ordering::Acquire) {
            return;
        }
        // It has ended already, or will now.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// How the program ended, once that is reported; does not wait. [`ExitStatus::MonitorLost`] if the monitor
    /// ended without a report; the program and its process group are killed from here then.
    pub fn try_exit_status(&self) -> io::Result<Option<ExitStatus>> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while ended.is_none() {
            match wire::receive::<Note>(&self.control) {
                Ok(Received::Packet(Note::Ended(status), _)) => *ended = Some(status),
                Ok(Received::Packet(..)) => {}
                Ok(Received::Nothing) => return Ok(None),
                Ok(Received::Closed) => {
                    self.kill_program();
                    *ended = Some(ExitStatus::MonitorLost);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(*ended)
    }

    /// Reaps the monitor if it has exited; does not wait. True from then on, also where somebody else has to reap it.
    pub fn reap(&self) -> io::Result<bool> {
        Ok(graveyard::reap(self.pidfd.as_fd())?)
    }

    /// A monitor that is gone has killed everything, or was killed itself, which the exit status tells.
    fn order(&self, order: &Order) -> io::Result<()> {
        match wire::send(self.control.as_fd(), order, &[]) {
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::PIPE | Errno::CONNRESET)) => {
                Ok(())
            }
            other => other,
        }
    }

    /// By pidfd, so that no stranger can be hit. Neither failure matters: it is dead, or the monitor will see to it.
    fn kill_program(&self) {
        let _ = sys::signal_group(self.program.as_fd(), Signal::KILL);
        let _ = pidfd_send_signal(&self.program, Signal::KILL);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if self.released.load(Ordering::Acquire) || matches!(self.reap(), Ok(true)) {
            return;
        }
        // Closing the control socket, which happens next, is what ends the monitor and everything below it.
        let _ = self.kill_all();
        if let Ok(pidfd) = self.pidfd.try_clone() {
            graveyard::bury(pidfd);
        }
    }
}
