//! One attack: starting, watching, stopping and judging it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use talon_jail::{ExitStatus, Group, JailedProgram};

/// How long an attack may take; the longest takes five seconds here.
pub(crate) const ATTACK_TIME: Duration = Duration::from_secs(40);

/// How long a program may take to end after SIGTERM. The supervisor's own is longer; the attacks ignore it
/// anyway.
const GRACE: Duration = Duration::from_millis(100);

/// A running program, in a jail or without one.
pub(crate) enum Running {
    Plain { child: Child, pidfd: OwnedFd, stdout: OwnedFd },
    Jailed { jailed: Box<JailedProgram>, group: Option<Group> },
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal {
        number: i32,
        core: bool,
    },
    /// It exceeded its memory limit.
    OutOfMemory,
    /// Unknown: its monitor was lost.
    Lost,
}

impl Running {
    /// Without our jail.
    pub(crate) fn plain(mut command: Command) -> anyhow::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start the attack")?;
        let stdout = child.stdout.take().context("its output is a pipe")?.into();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self::Plain { child, pidfd, stdout })
    }

    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Plain { child, .. } => child.id(),
            Self::Jailed { jailed, .. } => jailed.pid,
        }
    }

    pub(crate) fn stdout(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain { stdout, .. } => stdout.as_fd(),
            Self::Jailed { jailed, .. } => jailed.stdout.as_fd(),
        }
    }

    /// Waits for its end; `None` when the time is over.
    pub(crate) fn wait(&mut self, time: Duration) -> anyhow::Result<Option<End>> {
        let deadline = Instant::now() + time;
        match self {
            Self::Plain { child, pidfd, .. } => {
                if !readable(pidfd.as_fd(), deadline)? {
                    return Ok(None);
                }
                let status = child.wait()?;
                Ok(Some(match (status.code(), status.signal()) {
                    (Some(code), _) => End::Code(code),
                    (None, Some(number)) => End::Signal { number, core: status.core_dumped() },
                    (None, None) => End::Lost,
                }))
            }
            Self::Jailed { jailed, group } => loop {
                if let Some(status) = jailed.monitor.try_exit_status()? {
                    let explain = |group: &Group| group.explain(status);
                    return Ok(Some(match group.as_ref().map_or(status, explain) {
                        ExitStatus::Code(code) => End::Code(code),
                        ExitStatus::Signal { signal, core_dumped } => {
                            End::Signal { number: signal, core: core_dumped }
                        }
                        ExitStatus::OutOfMemory { .. } | ExitStatus::TooManyLocks { .. } => End::OutOfMemory,
                        // An attack that kills its own monitor is reported as such.
                        ExitStatus::Unwatched { .. } | ExitStatus::MonitorLost => End::Lost,
                    }));
                }
                if !readable(jailed.monitor.control(), deadline)? {
                    return Ok(None);
                }
            },
        }
    }

    /// Ends it as a supervisor does: SIGTERM, grace period, SIGKILL. Its other processes are ended only by a
    /// jail.
    pub(crate) fn stop(mut self) -> anyhow::Result<Option<End>> {
        self.ask_to_end()?;
        let mut end = self.wait(GRACE)?;
        match &mut self {
            Self::Plain { child, .. } if end.is_none() => {
                child.kill()?;
                end = self.wait(ATTACK_TIME)?;
            }
            Self::Plain { .. } => {}
            Self::Jailed { jailed, .. } => {
                jailed.monitor.kill_all()?;
                if !readable(jailed.monitor.pidfd(), Instant::now() + ATTACK_TIME)? {
                    return Ok(None);
                }
                if end.is_none() {
                    end = self.wait(GRACE)?;
                }
                let Self::Jailed { jailed, .. } = &self else { unreachable!("it was one above") };
                jailed.monitor.reap()?;
            }
        }
        Ok(end)
    }

    fn ask_to_end(&self) -> anyhow::Result<()> {
        match self {
            Self::Plain { pidfd, .. } => {
                // It may have ended already.
                let _ = pidfd_send_signal(pidfd, Signal::TERM);
            }
            Self::Jailed { jailed, .. } => jailed.monitor.signal(15)?,
        }
        Ok(())
    }
}

/// The first line, or the output until the end or the deadline.
pub(crate) fn first_line(pipe: BorrowedFd<'_>, time: Duration) -> anyhow::Result<Option<String>> {
    /// Lines of attacks are short; the rest of a longer one is not needed.
    const LONGEST: usize = 1024;
    let deadline = Instant::now() + time;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LONGEST {
        if !readable(pipe, deadline)? {
            return Ok(None);
        }
        match rustix::io::read(pipe, &mut byte) {
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.push(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Waits until a descriptor is readable or closed at its other end; false when the time is over.
pub(crate) fn readable(descriptor: BorrowedFd<'_>, deadline: Instant) -> anyhow::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).context("a time that fits")?;
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&left)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
