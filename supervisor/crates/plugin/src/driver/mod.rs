//! One task for each instance; it performs what the instance's [`Machine`] decides.
//!
//! A plugin with several instances has several machines: they die, back off and fail independently, and the
//! operator's commands go to all of them. Everything a driver waits for (the launch, the exit, a health
//! check, the end of the calls) is a future polled by the task itself, so ending the task ends all of it, and
//! dropping the last handle on a process kills it.

mod driver_metrics;
#[cfg(test)]
pub(crate) mod fake_launcher;
mod process_impls;
mod reporting;

use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use talon_plugin_client::HealthStatus;
use talon_plugin_config::spec::Dialect;
use talon_sanitize::{Raw, inert};
use talon_wire::frames::FrameFloodError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::handover::InstanceCounters;
use crate::instances::{InstanceStatus, LastStart, Slot};
use crate::launch::ProgramChoice;
use crate::lifecycle::backoff::Jitter;
use crate::lifecycle::event::{CallFailure, CheckResult, Input, MachineAction, MachineEvent, ProcessReport};
use crate::lifecycle::machine::Machine;
use crate::lifecycle::{Desired, MachineTime, State};
use crate::live_process::LiveProcess;
use crate::logs::Level;
use crate::notices::NoticeListener;
use crate::overdue_call::{MAX_WATCHED, OverdueCall};
use crate::plugin_context::PluginContext;
use crate::traits::LaunchProgress;
use crate::traits::{Launch, ProcessHandle, StartFailure, StartedProcess};

/// The queue of commands for one driver; senders wait when it is full. An operator sends one at a time.
pub(crate) const COMMAND_QUEUE: usize = 16;

/// The queue of progress notes from one launch: a launch sends two.
const PROGRESS_QUEUE: usize = 8;

/// The longest description of a call in a reason, in bytes: an id and an action of maximum length, and the
/// text between them.
const MAX_CALL_LABEL_BYTES: usize = 400;

/// Longer sleeps are split, because an `Instant` so far ahead may not exist.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// Commands for a driver, from an operator or from the registry.
pub(crate) enum Command {
    /// An event for the machine; answered once its actions have begun and the status is published.
    /// Boxed, because every driver allocates a block of commands at its start, and events are by far the largest.
    Event(Box<MachineEvent>, oneshot::Sender<()>),
    /// Stop for good: a later start is refused. Answered like `Event`; an `Event` after it is never answered.
    Retire { grace: Option<Duration>, done: oneshot::Sender<()> },
    /// End the task, and with it the process, if there still is one. If the launcher has released its
    /// processes, the process keeps running, because another supervisor owns it.
    End,
    /// Answered between two events if the driver responds.
    Ping(oneshot::Sender<()>),
    /// Return what another supervisor needs to take over the process; `None` if it is not ready.
    ReadyProcess(oneshot::Sender<Option<ReadyProcess>>),
}

/// A ready process and the counters of its instance.
pub(crate) struct ReadyProcess {
    pub(crate) instance: u32,
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) counted: InstanceCounters,
}

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
    /// Whether an operator asked for the next launch: it uses the disk, whatever failed to replace this plugin.
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

    fn ready_process(&self) -> Option<ReadyProcess> {
        let running = self.running.as_ref().filter(|_| self.machine.state() == State::Ready)?;
        let counted = InstanceCounters {
            starts: self.status.starts,
            ready_since: self.status.ready_since,
            start_to_ready: self.status.start_to_ready,
        };
        Some(ReadyProcess { instance: self.slot.index, process: running.process.clone(), counted })
    }

    fn on_progress(&mut self, generation: u64, progress: LaunchProgress) {
        if generation != self.machine.generation() || self.launching.is_none() {
            return;
        }
        match progress {
            LaunchProgress::Started { pid, uid } => {
                self.status.pid = Some(pid);
                self.status.uid = Some(uid);
                self.spawned_at = Some(Instant::now());
                self.step(MachineEvent::Report { generation, report: ProcessReport::ProcessStarted });
            }
            LaunchProgress::Handshaken => self.time_handshake(),
        }
    }

    fn on_outcome(&mut self, generation: u64, heard: TaskOutcome) {
        let report = match heard {
            TaskOutcome::Report(report) => report,
            TaskOutcome::Flooded(flood) => {
                let Some(flood) = flood else { return };
                let how = Raw::of(flood).line();
                self.report_flood(generation, &how);
                ProcessReport::Flooded { how }
            }
            TaskOutcome::OverdueWatched(report) => {
                self.watched -= 1;
                let Some(report) = report else { return };
                report
            }
            TaskOutcome::Launched(result) => match *result {
                Ok(started) => {
                    self.on_launched(started);
                    ProcessReport::Launched
                }
                Err(StartFailure { cause, permanent }) => {
                    // A launch that was cancelled fails as intended.
                    if self.machine.state() != State::Draining {
                        let text = inert!("it did not start: {}", cause);
                        self.common.logs.note(self.slot.index, Level::Warn, text);
                    }
                    ProcessReport::LaunchFailed { cause, refused: permanent }
                }
            },
        };
        match &report {
            ProcessReport::LaunchFailed { .. } | ProcessReport::Gone => self.on_gone(),
            ProcessReport::Exited { how } => self.report_exit(how),
            ProcessReport::IgnoredDeadline { .. } => self.report_ignored_deadline(generation, &report),
            _ => {}
        }
        self.step(MachineEvent::Report { generation, report });
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

    fn perform(&mut self, action: MachineAction) {
        match action {
            MachineAction::Launch { generation } => self.launch(generation),
            MachineAction::CancelLaunch => {
                if let Some((cancel, _)) = &self.launching {
                    cancel.cancel();
                }
            }
            MachineAction::CheckHealth => self.check_health(),
            MachineAction::AwaitCalls => {
                let Some(running) = &self.running else { return };
                running.live.close();
                let live = running.live.clone();
                self.push_work(async move {
                    live.idle().await;
                    ProcessReport::CallsDone
                });
            }
            MachineAction::FailCalls(end) => {
                if let Some(running) = &self.running {
                    running.live.fail_calls(end);
                }
            }
            MachineAction::AskToExit => self.ask_to_exit(),
            MachineAction::Terminate => {
                if let Some(running) = &self.running {
                    running.process.terminate();
                }
            }
            MachineAction::Kill => self.kill(),
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

    fn launch(&mut self, generation: u64) {
        let cancel = CancellationToken::new();
        self.launching = Some((cancel.clone(), Instant::now()));
        self.status.starts += 1;
        let (launcher, common) = (self.launcher.clone(), self.common.clone());
        let (index, before) = (self.slot.index, self.slot.base_generation);
        let notes = self.progress_sender.clone();
        let asked = std::mem::take(&mut self.start_requested);
        let failed = if asked { None } else { common.replacement_problem.load_full() };
        self.work.push(Box::pin(async move {
            let note = move |progress| {
                // A note that does not fit into the queue is lost; it is only shown while the launch is in progress.
                let _ = notes.try_send((generation, progress));
            };
            let numbers = (index, before + generation);
            let choice = ProgramChoice { cache: &common.last_good, disk_failure: failed.as_deref() };
            let launch = launcher.launch(&common.spec, numbers, choice, &common.logs, &note, &cancel);
            // The plugin's data is parsed in there: a panic must end this launch, not this task.
            let result = AssertUnwindSafe(launch).catch_unwind().await.unwrap_or_else(|_| {
                let cause = "internal error while it started; the supervisor's log has more".into();
                Err(StartFailure { cause, permanent: false })
            });
            let heard = TaskOutcome::Launched(Box::new(result));
            (generation, heard)
        }));
    }

    /// After a successful launch: watches the process and opens it to calls.
    fn on_launched(&mut self, started: StartedProcess) {
        let StartedProcess { process, client, capability, report, digest, dialect, taken_over } = started;
        let watches = self.common.spec.lifecycle.kill_overdue_after.is_some();
        let overdue = watches.then(|| self.overdue_sender.clone());
        let of = (self.common.spec.name.clone(), self.slot.index);
        let live = Arc::new(LiveProcess::new(client, of, self.machine.generation(), overdue));
        self.status.pid = Some(process.pid());
        self.status.uid = Some(process.uid());
        self.report_jail(&report);
        self.status.last_start = Some(Arc::new(LastStart { report, digest, dialect }));
        self.status.start_to_ready = self.launching.take().map(|(_, began)| began.elapsed());
        // A process that was taken over was started elsewhere.
        if taken_over.is_none() {
            self.time_start();
        }
        self.status.ready_since = Some(SystemTime::now());
        self.status.taken_over = taken_over.is_some();
        if let Some(counted) = taken_over {
            // It was not started here.
            self.status.starts = counted.starts.max(1);
            self.status.ready_since = counted.ready_since;
            self.status.start_to_ready = counted.start_to_ready;
        }
        // The other dialects have no notices.
        let tells = dialect == Dialect::GoPlugin;
        live.set_notices_enabled(tells);
        self.slot.live.store(Some(live.clone()));
        self.slot.set_process(Some(Arc::downgrade(&process)));
        self.common.set_capability(capability);
        let hearing = tells.then(|| {
            let ear =
                NoticeListener { common: self.common.clone(), instance: self.slot.index, live: live.clone() };
            AbortOnDropHandle::new(tokio::spawn(ear.listen()))
        });
        let watched = process.clone();
        self.push_work(async move { ProcessReport::Exited { how: watched.exited().await } });
        self.watch_frames(&process, &live);
        self.running = Some(RunningProcess {
            process,
            live,
            dialect,
            since: Instant::now(),
            awaiting_end: false,
            notice_task: hearing,
        });
    }

    /// Watches whether the process floods a connection, until it ends.
    fn watch_frames(&self, process: &Arc<dyn ProcessHandle>, live: &Arc<LiveProcess>) {
        let (process, live, generation) = (process.clone(), live.clone(), self.machine.generation());
        self.work.push(Box::pin(async move {
            let flood = tokio::select! {
                flood = live.client.flood() => Some(flood),
                _ = process.exited() => None,
            };
            (generation, TaskOutcome::Flooded(flood))
        }));
    }

    /// After the end of a process or a launch: nothing of it is left.
    fn on_gone(&mut self) {
        self.launching = None;
        self.running = None;
        self.slot.live.store(None);
        self.slot.set_process(None);
        self.status.pid = None;
        self.status.uid = None;
        self.status.ready_since = None;
        self.status.taken_over = false;
    }

    fn check_health(&mut self) {
        let Some(running) = &self.running else { return };
        let live = running.live.clone();
        let (epoch, timeout) = (self.epoch, self.common.spec.lifecycle.health_check_timeout);
        self.push_work(async move {
            let busy_before = live.busy_until();
            let pulse = AssertUnwindSafe(live.client.health(timeout)).catch_unwind().await;
            let answered = live.take_answered();
            ProcessReport::Checked(match pulse {
                Ok(HealthStatus::Serving) => CheckResult::Serving,
                Ok(HealthStatus::NotServing) => CheckResult::NotServing,
                Ok(HealthStatus::Failed(cause)) => CheckResult::NoAnswer {
                    cause,
                    busy_until: busy_before
                        .max(live.busy_until())
                        .map(|at| at.saturating_duration_since(epoch)),
                    answered,
                },
                Err(_) => {
                    CheckResult::NoAnswer { cause: "internal error".into(), busy_until: None, answered }
                }
            })
        });
    }

    fn ask_to_exit(&mut self) {
        let Some(running) = &mut self.running else { return };
        // A server that shuts down in order waits for its streams.
        drop(running.notice_task.take());
        // OpenTalon has no Shutdown: its plugins end on SIGINT, as in a terminal.
        if running.dialect == Dialect::OpenTalon {
            running.process.interrupt();
            return;
        }
        let (live, timeout) = (running.live.clone(), self.common.spec.lifecycle.grace_period);
        self.push_work(async move {
            let answer = AssertUnwindSafe(live.client.shutdown(timeout)).catch_unwind().await;
            ProcessReport::ExitAnswered { accepted: answer.unwrap_or(false) }
        });
    }

    fn kill(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.process.kill_all();
        if !std::mem::replace(&mut running.awaiting_end, true) {
            let process = running.process.clone();
            self.push_work(async move {
                process.gone().await;
                ProcessReport::Gone
            });
        }
    }

    /// Watches whether the plugin ends an overdue call. Nothing is sent meanwhile, so that a plugin which
    /// follows the deadline that it received can finish undisturbed.
    fn watch_overdue(&mut self, call: OverdueCall) {
        let Some(patience) = self.common.spec.lifecycle.kill_overdue_after else { return };
        if self.watched == MAX_WATCHED {
            return;
        }
        self.watched += 1;
        let OverdueCall { generation, call_id, action, since, stream_end: rest } = call;
        let end = since.checked_add(patience);
        let left = end.map_or(LONGEST_SLEEP, |end| end.saturating_duration_since(Instant::now()));
        let left = left.min(LONGEST_SLEEP);
        self.work.push(Box::pin(async move {
            let ignored = tokio::time::timeout(left, rest).await.is_err();
            // A call's id may come from its caller.
            let which = || {
                Raw::of(format_args!("call {call_id} (action {action})")).line_within(MAX_CALL_LABEL_BYTES)
            };
            let report = ignored.then(|| ProcessReport::IgnoredDeadline { which: which(), patience });
            (generation, TaskOutcome::OverdueWatched(report))
        }));
    }

    fn push_work(&self, work: impl Future<Output = ProcessReport> + Send + 'static) {
        let generation = self.machine.generation();
        self.work.push(Box::pin(async move { (generation, TaskOutcome::Report(work.await)) }));
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
