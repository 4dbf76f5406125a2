//! The monitor: what the stage becomes. It is the program's parent until no process of the program is left.
//!
//! It waits for three events, and makes sockets for a [program with ports](super::socket_broker) meanwhile. A
//! child has ended: it reaps it, and if it was the program, reports how it ended and kills the rest. A
//! command has arrived: it executes it. The control socket has closed: it kills everything. Where no cgroup
//! limits the total memory, it also checks that at intervals. It blocks every signal that can be blocked, so
//! that a SIGTERM for the supervisor's process group does not end the plugins too. It keeps no capability but
//! CAP_KILL, and no descriptor of the program's.
//!
//! It knows the program only by what `fork` returned, and adopts all orphans below it. The first process of a
//! pid namespace does that anyway, so it needs no other code there, and has two advantages: no process in the
//! namespace can kill, stop or trace it, whatever their uid; and when it ends, for whatever reason, the
//! kernel kills all the others before its end is visible.

use std::io::{PipeReader, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, kill_process, kill_process_group,
    pidfd_open, wait, waitid,
};

use super::child::{EXECUTING, REPORTED};
use super::memory_watch::MemoryWatch;
use super::request::Plan;
use super::socket_broker::SocketBroker;
use super::step_error::StepError;
use super::{capabilities, descriptors, process_tree};
use crate::exit::ExitStatus;
use crate::sys;
use crate::wire::{self, ReceiveOutcome, StageCommand, StageNote};

/// How long to wait for a killed child before everything is killed again. Each death ends the wait, so this
/// only counts when nothing dies: a process that the kernel cannot end yet, or one that was forked between
/// two rounds.
const KILL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

struct MonitorLoop<'c> {
    program: Pid,
    /// The program's pidfd, sent once the program runs.
    pidfd: Option<OwnedFd>,
    control: &'c OwnedFd,
    signals: SignalFd,
    /// Whether it is the first process of a pid namespace.
    is_init: bool,
    /// The program's private directory, until it is sent to the supervisor.
    private: Option<OwnedFd>,
    /// The pipe whose end means that the child executed the program, until then.
    executed: Option<PipeReader>,
    /// Makes the program's TCP sockets, if its network is limited to ports.
    broker: Option<SocketBroker>,
    /// Watches the total memory, where no cgroup limits it.
    memory_watch: Option<MemoryWatch>,
    /// The last byte that came over the pipe.
    child_report: Option<u8>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The child is building the jail.
    Starting,
    /// The program was executed.
    Running,
    /// The child is reaped, so its pid may be reused.
    Reaped,
}

/// Watches the program, and exits after it. Returns only if it cannot start watching.
pub(super) fn run(
    program: Pid,
    control: &OwnedFd,
    executed: PipeReader,
    signals: SignalFd,
    broker: Option<SocketBroker>,
    mut plan: Plan,
) -> Result<(), StepError> {
    let mut monitor = MonitorLoop {
        program,
        pidfd: None,
        control,
        signals,
        is_init: plan.namespaces.get().is_some(),
        broker,
        memory_watch: memory_watch(&mut plan),
        private: plan.private.take(),
        executed: Some(executed),
        child_report: None,
        phase: Phase::Starting,
    };
    drop(plan);
    if let Err(error) = monitor.release_unneeded() {
        monitor.end_everything();
        return Err(error);
    }
    monitor.run_loop();
    monitor.end_everything();
    exit(0);
}

fn memory_watch(plan: &mut Plan) -> Option<MemoryWatch> {
    let private = plan.private.get().and_then(|private| private.try_clone().ok());
    let proc = plan.watched_proc.take()?;
    Some(MemoryWatch::new(plan.spec.limits.memory_bytes, proc, private, plan.watched_sockets.take()))
}

impl MonitorLoop<'_> {
    /// Releases everything that a monitor does not need.
    fn release_unneeded(&mut self) -> Result<(), StepError> {
        let failed = |what| move |errno: Errno| StepError::errno(what, errno.raw_os_error(), "");
        self.pidfd =
            Some(pidfd_open(self.program, PidfdFlags::empty()).map_err(failed("cannot open a pidfd"))?);
        let flags = OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(self.executed.as_ref().expect("it was given just now"), flags)
            .map_err(failed("cannot set up the monitor"))?;
        descriptors::release_output()?;
        rustix::process::chdir("/").map_err(failed("cannot leave the working directory"))?;
        capabilities::keep_right_to_kill();
        // For `ps`; an error does not matter.
        let _ = rustix::thread::set_name(c"talon-monitor");
        sys::release_memory();
        Ok(())
    }

    /// Runs until everything is to be killed, and then returns.
    fn run_loop(&mut self) {
        loop {
            let (executed, died, ordered) = self.wait();
            if self.phase == Phase::Running
                && let Some(status) = self.memory_watch.as_mut().and_then(MemoryWatch::check)
            {
                self.notify(&StageNote::Ended(status));
                return;
            }
            if (executed || died) && !self.has_started() {
                return;
            }
            if died {
                self.drain_signals();
                self.reap();
                if self.phase == Phase::Reaped {
                    return;
                }
            }
            if ordered {
                match wire::receive::<StageCommand>(self.control) {
                    Ok(ReceiveOutcome::Packet(StageCommand::Signal(signal), _)) => self.forward(signal),
                    Ok(ReceiveOutcome::Empty) => {}
                    // A command to kill, a supervisor that has gone, or an invalid command.
                    Ok(
                        ReceiveOutcome::Packet(StageCommand::KillAll | StageCommand::Start(_), _)
                        | ReceiveOutcome::Closed,
                    )
                    | Err(_) => {
                        return;
                    }
                }
            }
        }
    }

    /// Waits, and returns which of the three events occurred; none when the memory is to be checked.
    fn wait(&mut self) -> (bool, bool, bool) {
        let mut polled =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(self.control, PollFlags::IN)];
        if let Some(executed) = &self.executed {
            polled.push(PollFd::new(executed, PollFlags::IN));
        }
        let broker_at = polled.len();
        if let Some(broker) = self.broker.as_ref().and_then(SocketBroker::descriptor) {
            polled.push(PollFd::from_borrowed_fd(broker, PollFlags::IN));
        }
        // This fails only if the kernel is out of memory. Then all three are checked, which is harmless.
        let look = self
            .memory_watch
            .as_ref()
            .filter(|_| self.phase == Phase::Running)
            .map(MemoryWatch::until_next_check);
        let failed = retry_on_intr(|| poll(&mut polled, look.as_ref())).is_err();
        let ready = |index: usize| polled.get(index).is_some_and(|fd| failed || !fd.revents().is_empty());
        let events = (self.executed.is_some() && ready(2), ready(0), ready(1));
        let from_broker = polled.get(broker_at).map(PollFd::revents).filter(|revents| !revents.is_empty());
        drop(polled);
        if let (Some(revents), Some(broker)) = (from_broker, &mut self.broker) {
            broker.answer(revents.contains(PollFlags::IN));
        }
        events
    }

    /// Whether the child is in order so far: it has executed the program, or is still building the jail.
    fn has_started(&mut self) -> bool {
        let Some(executed) = &mut self.executed else { return true };
        let mut word = [0; 2];
        loop {
            match executed.read(&mut word) {
                Ok(0) => break,
                Ok(read) => self.child_report = Some(word[read - 1]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        self.executed = None;
        match self.child_report {
            Some(EXECUTING) => {
                self.phase = Phase::Running;
                let beside = [self.pidfd.take(), self.private.take()];
                let beside: Vec<_> = beside.iter().flatten().map(AsFd::as_fd).collect();
                wire::send(self.control.as_fd(), &StageNote::Running, &beside).is_ok()
            }
            Some(REPORTED) => false,
            _ => {
                self.notify(&StageNote::failed(
                    "fork",
                    "the child was killed before it could execute the program",
                ));
                false
            }
        }
    }

    fn forward(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        if self.phase == Phase::Reaped {
            return;
        }
        // It is not reaped, so pid and process group are still its own. An error means that there is no
        // process to signal.
        let _ = kill_process_group(self.program, signal);
        if getpgid(Some(self.program)) != Ok(self.program) {
            let _ = kill_process(self.program, signal);
        }
    }

    /// Reaps all ended children. False when there is no child left.
    fn reap(&mut self) -> bool {
        loop {
            self.kill_group_of_ended_program();
            match retry_on_intr(|| wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) if pid == self.program && self.phase != Phase::Reaped => {
                    let ran = self.phase == Phase::Running;
                    self.phase = Phase::Reaped;
                    if ran && let Some(status) = ExitStatus::from_wait(status) {
                        self.notify(&StageNote::Ended(status));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// The process group's number stays reserved until the program is reaped, so this cannot hit other
    /// processes. All processes of the group are signaled at once.
    fn kill_group_of_ended_program(&self) {
        if self.phase == Phase::Reaped {
            return;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if matches!(waitid(WaitId::Pid(self.program), look), Ok(Some(_))) {
            let _ = kill_process_group(self.program, Signal::KILL);
        }
    }

    /// Kills in rounds until no child is left. It never gives up: otherwise a plugin could go on running
    /// without a monitor.
    fn end_everything(&mut self) {
        loop {
            if self.phase != Phase::Reaped {
                let _ = kill_process_group(self.program, Signal::KILL);
                let _ = kill_process(self.program, Signal::KILL);
            }
            if self.is_init {
                // All processes in the namespace except this one, at once.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), nix::sys::signal::SIGKILL);
            } else {
                for child in process_tree::children() {
                    // Only this process reaps them, so the pid is still the child's.
                    let _ = kill_process(child, Signal::KILL);
                }
            }
            if !self.reap() {
                return;
            }
            let mut polled = [PollFd::new(&self.signals, PollFlags::IN)];
            let _ = poll(&mut polled, Some(&KILL_INTERVAL));
            self.drain_signals();
        }
    }

    fn drain_signals(&self) {
        while matches!(self.signals.read_signal(), Ok(Some(_))) {}
    }

    /// Sends a message. If that fails, the supervisor has gone, or will see the socket close.
    fn notify(&self, note: &StageNote) {
        let _ = wire::send(self.control.as_fd(), note, &[]);
    }
}
