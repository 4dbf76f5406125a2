//! One task for each instance; it performs what the instance's [`Machine`] decides.
//!
//! A plugin with several instances has several machines: they die, back off and fail independently, and the
//! operator's commands go to all of them. Everything a driver waits for (the launch, the exit, a health
//! check, the end of the calls) is a future polled by the task itself, so ending the task ends all of it, and
//! dropping the last handle on a process kills it.

mod actions;
mod command;
mod driver_metrics;
#[cfg(test)]
pub(crate) mod fake_launcher;
mod outcomes;
mod process_impls;
mod reporting;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use talon_plugin_config::spec::Dialect;
use talon_wire::frames::FrameFloodError;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::command::{Command, ReadyProcess};
use crate::instances::{InstanceStatus, Slot};
use crate::launcher::Launch;
use crate::lifecycle::backoff::Jitter;
use crate::lifecycle::event::{CallFailure, Input, MachineEvent, ProcessReport};
use crate::lifecycle::machine::Machine;
use crate::lifecycle::{Desired, MachineTime, State};
use crate::live_process::LiveProcess;
use crate::overdue_call::{MAX_WATCHED, OverdueCall};
use crate::plugin_context::PluginContext;
use crate::traits::process::ProcessHandle;
use crate::traits::start::{LaunchProgress, StartFailure, StartedProcess};

/// The queue of commands for one driver; senders wait when it is full. An operator sends one at a time.
pub(crate) const COMMAND_QUEUE: usize = 16;

/// The queue of progress notes from one launch: a launch sends two.
const PROGRESS_QUEUE: usize = 8;

/// Longer sleeps are split, because an `Instant` so far ahead may not exist.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of one of the driver's futures.
enum TaskOutcome {
    Launched(Box<Result<StartedProcess, StartFailure>>),
    Report(ProcessReport),
    /// The process exceeded a budget of frames; nothing if it ended before.
    Flooded(Option<FrameFloodError>),
    /// The watch over an overdue call ended; with a report if the call was ignored.
    OverdueWatched(Option<ProcessReport>),
}

/// The progress of the launch of a generation.
type LaunchNote = (u64, LaunchProgress);

struct RunningProcess {
    process: Arc<dyn ProcessHandle>,
    live: Arc<LiveProcess>,
    dialect: Dialect,
    since: Instant,
    /// Whether a future already waits until nothing of it is left.
    awaiting_end: bool,
    /// Reads its notices until this is dropped.
    notice_task: Option<AbortOnDropHandle<()>>,
    /// Reads its events until this is dropped.
    event_task: Option<AbortOnDropHandle<()>>,
}

pub(crate) struct Driver {
    launcher: Arc<dyn Launch>,
    common: Arc<PluginContext>,
    slot: Arc<Slot>,
    machine: Machine,
    status: InstanceStatus,
    /// The origin of the machine's time.
    epoch: Instant,
    commands: mpsc::Receiver<Command>,
    progress_sender: mpsc::Sender<LaunchNote>,
    progress_receiver: mpsc::Receiver<LaunchNote>,
    /// Passed to processes whose overdue calls are watched.
    overdue_sender: mpsc::Sender<Box<OverdueCall>>,
    overdue_calls: mpsc::Receiver<Box<OverdueCall>>,
    /// The number of overdue calls that are watched.
    watched: usize,
    work: FuturesUnordered<BoxFuture<'static, (u64, TaskOutcome)>>,
    launching: Option<(CancellationToken, Instant)>,
    /// Whether an operator asked for the next launch: it uses the disk, whatever failed to replace this
    /// plugin.
    start_requested: bool,
    /// When the process was started that is still in its handshake.
    spawned_at: Option<Instant>,
    running: Option<RunningProcess>,
    retired: bool,
    random: RandomState,
    draws: u64,
}

impl Driver {
    pub(crate) fn new(
        launcher: Arc<dyn Launch>,
        common: Arc<PluginContext>,
        slot: Arc<Slot>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let machine = Machine::new(common.spec.lifecycle.clone());
        let status = slot.status.load().as_ref().clone();
        let (progress_sender, progress_receiver) = mpsc::channel(PROGRESS_QUEUE);
        let (overdue_sender, overdue_calls) = mpsc::channel(MAX_WATCHED);
        Self {
            launcher,
            common,
            slot,
            machine,
            status,
            epoch: Instant::now(),
            commands,
            progress_sender,
            progress_receiver,
            overdue_sender,
            overdue_calls,
            watched: 0,
            work: FuturesUnordered::new(),
            launching: None,
            start_requested: false,
            spawned_at: None,
            running: None,
            retired: false,
            random: RandomState::new(),
            draws: 0,
        }
    }

    /// Runs until it is commanded to end, or all senders of commands are gone.
    pub(crate) async fn run(mut self) {
        if self.status.desired == Desired::Up {
            self.step(MachineEvent::Start);
        }
        let mut paused = self.common.paused.clone();
        loop {
            // Without a registry nothing pauses a driver.
            let _ = paused.wait_for(|paused| !paused).await;
            let wake = self.machine.wake_at();
            tokio::select! {
                Ok(()) = paused.changed() => {}
                command = self.commands.recv() => {
                    let (event, done) = match command {
                        Some(Command::Event(_, _)) if self.retired => continue,
                        Some(Command::Event(event, done)) => (*event, done),
                        Some(Command::Retire { grace, done }) => {
                            self.retired = true;
                            (MachineEvent::Stop { grace }, done)
                        }
                        Some(Command::Ping(answer)) => {
                            // The caller may have given up.
                            let _ = answer.send(());
                            continue;
                        }
                        Some(Command::ReadyProcess(answer)) => {
                            // The caller may have given up.
                            let _ = answer.send(self.ready_process());
                            continue;
                        }
                        Some(Command::End) | None => break,
                    };
                    self.step(event);
                    // The caller may have given up.
                    let _ = done.send(());
                },
                Some((generation, progress)) = self.progress_receiver.recv() => self.on_progress(generation, progress),
                Some(call) = self.overdue_calls.recv() => self.watch_overdue(*call),
                Some((generation, heard)) = self.work.next() => self.on_outcome(generation, heard),
                () = sleep_until(self.epoch, wake) => self.step(MachineEvent::Tick),
            }
        }
        if let Some(running) = self.running.take() {
            running.live.fail_calls(CallFailure::Stopped);
        }
        self.slot.live.store(None);
        self.status.will_be_ready = false;
        self.status.desired = Desired::Down;
        self.status.state = State::Stopped;
        self.publish_status();
    }

    /// Passes one event to the machine and performs what it decides.
    fn step(&mut self, event: MachineEvent) {
        let input = Input { now: self.now(), jitter: self.draw_jitter() };
        let (before, failed_before) = (self.machine.state(), self.machine.failed_checks());
        let (word, died_before) = (self.restart_reason(&event), self.machine.total_deaths());
        let check = match &event {
            MachineEvent::Report { report: ProcessReport::Checked(verdict), .. } => Some(verdict.clone()),
            _ => None,
        };
        self.start_requested |= self.asks_for_launch(&event);
        let actions = self.machine.step(event, input);
        self.count_restart(word, died_before);
        self.refresh_status(input.now, before);
        if let Some(verdict) = check {
            self.report_failed_check(&verdict, failed_before);
        }
        for action in actions {
            self.perform(action);
        }
    }

    /// Whether an operator asked for a process that does not exist yet.
    fn asks_for_launch(&self, event: &MachineEvent) -> bool {
        match event {
            MachineEvent::Restart => true,
            MachineEvent::Start => !matches!(
                self.machine.state(),
                State::Starting | State::Handshaking | State::Ready | State::Unhealthy
            ),
            MachineEvent::Stop { .. } | MachineEvent::Report { .. } | MachineEvent::Tick => false,
        }
    }

    fn refresh_status(&mut self, now: MachineTime, before: State) {
        let state = self.machine.state();
        self.status.state = state;
        self.status.desired = self.machine.desired();
        self.status.will_be_ready = self.machine.will_be_ready();
        self.status.reason = self.machine.reason().map(|reason| reason.describe(&self.common.spec.name));
        self.status.cause = self.machine.reason().and_then(|reason| reason.cause().cloned());
        self.status.deaths = self.machine.deaths(now);
        self.status.generation = self.slot.base_generation + self.machine.generation();
        self.publish_status();
        if state != before {
            self.report_state(before, state);
        }
    }

    fn publish_status(&self) {
        self.slot.status.store(Arc::new(self.status.clone()));
        self.common.pool.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn now(&self) -> MachineTime {
        self.epoch.elapsed()
    }

    /// Jitter needs no strong randomness, only that plugins do not act in step: the standard library's
    /// randomly keyed hash of a counter provides that without another crate.
    fn draw_jitter(&mut self) -> Jitter {
        self.draws = self.draws.wrapping_add(1);
        let hash = self.random.hash_one(self.draws);
        Jitter(u32::try_from(hash >> 32).unwrap_or_default())
    }
}

async fn sleep_until(epoch: Instant, wake: Option<MachineTime>) {
    match wake {
        None => std::future::pending().await,
        Some(at) => tokio::time::sleep(at.saturating_sub(epoch.elapsed()).min(LONGEST_SLEEP)).await,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
