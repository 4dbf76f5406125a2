//! The supervisor's side of a monitor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::exit::ExitStatus;
use crate::wire::{self, ReceiveOutcome, StageCommand, StageNote};
use crate::{reaper, sys};

/// The supervisor's handle on the monitor: its pidfd and the control socket, whose closing is the lifeline.
/// Dropping it kills everything that the program started.
#[derive(Debug)]
pub struct Monitor {
    pid: u32,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// Pidfd of the program, for when the monitor cannot act.
    program: OwnedFd,
    exit_status: Mutex<Option<ExitStatus>>,
    /// Whether another supervisor owns it now.
    released: AtomicBool,
}

impl Monitor {
    pub(crate) fn new(pid: u32, pidfd: OwnedFd, control: OwnedFd, program: OwnedFd) -> Self {
        Self { pid, pidfd, control, program, exit_status: Mutex::new(None), released: AtomicBool::new(false) }
    }

    /// The monitor's pid.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Readable when the monitor has exited: no process of the program exists then.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Readable when the program's exit was reported, which comes before the monitor's own exit.
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Pidfd of the program.
    pub(crate) fn program_pidfd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Releases the program without ending it. From here on dropping the handle kills nothing, and commands
    /// have no effect. The program lives as long as another process holds what was [shared](Self::share).
    pub fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    /// Sends a standard signal (1 to 31) to the program and its process group. The monitor sends it: as the
    /// program's parent, it knows whether the pid is still the program's. It is no error if the program has
    /// ended already.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        if Signal::from_named_raw(signal).is_none() {
            let text = format!("{signal} is not the number of a standard signal (1 to 31)");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.order(&StageCommand::Signal(signal))
    }

    /// Kills everything that the program started, and the monitor itself.
    pub fn kill_all(&self) -> io::Result<()> {
        if self.released.load(Ordering::Acquire) {
            return Ok(());
        }
        // Kill the program from here too: if it has its monitor's uid, it may have stopped the monitor.
        self.kill_program();
        let ordered = self.order(&StageCommand::KillAll);
        // Resumes a stopped monitor, so that it does its work. Has no effect on one that has ended.
        let _ = pidfd_send_signal(&self.pidfd, Signal::CONT);
        ordered
    }

    /// Kills the monitor itself, if it does not respond to commands. In a pid namespace everything dies with
    /// it; without one, only the program does.
    pub fn kill_monitor(&self) {
        if self.released.load(Ordering::Acquire) {
            return;
        }
        // Has it ended already, this has no effect.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// How the program ended, once that is reported; does not block. [`ExitStatus::MonitorLost`] if the
    /// monitor ended without a report; then this kills the program and its process group.
    pub fn try_exit_status(&self) -> io::Result<Option<ExitStatus>> {
        let mut ended = self.exit_status.lock();
        while ended.is_none() {
            match wire::receive::<StageNote>(&self.control) {
                Ok(ReceiveOutcome::Packet(StageNote::Ended(status), _)) => *ended = Some(status),
                Ok(ReceiveOutcome::Packet(..)) => {}
                Ok(ReceiveOutcome::Empty) => return Ok(None),
                Ok(ReceiveOutcome::Closed) => {
                    self.kill_program();
                    *ended = Some(ExitStatus::MonitorLost);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(*ended)
    }

    /// Reaps the monitor if it has exited; does not block. True from then on, also if another process has to
    /// reap it.
    pub fn reap(&self) -> io::Result<bool> {
        Ok(reaper::reap(self.pidfd.as_fd())?)
    }

    /// Sends a command. A monitor that is gone is no error: the exit status reports it.
    fn order(&self, order: &StageCommand) -> io::Result<()> {
        match wire::send(self.control.as_fd(), order, &[]) {
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::PIPE | Errno::CONNRESET)) => {
                Ok(())
            }
            other => other,
        }
    }

    /// Kills by pidfd, so that no other process can be hit. Failures do not matter: it is dead, or the
    /// monitor kills it.
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
            reaper::reap_later(pidfd);
        }
    }
}
