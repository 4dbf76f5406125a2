//! One task for each instance; it performs what the instance's [`Machine`] decides.
//!
//! A plugin with several instances has several machines: they die, back off and fail independently, and the
//! operator's commands go to all of them. Everything a driver waits for (the launch, the exit, a health
//! check, the end of the calls) is a future polled by the task itself, so ending the task ends all of it, and
//! dropping the last handle on a process kills it.

mod real;
#[cfg(test)]
pub(crate) mod script;
mod tally;
mod tell;

use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use talon_sanitize::{Raw, inert};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::common::Common;
use crate::handover::Counted;
use crate::instances::{LastStart, Slot, View};
use crate::launch::{Choice, Progress};
use crate::lifecycle::backoff::Jitter;
use crate::lifecycle::event::{Action, CallsEnd, Event, Input, Report, Verdict};
use crate::lifecycle::machine::Machine;
use crate::lifecycle::{Desired, Moment, State};
use crate::live::Live;
use crate::logs::Level;
use crate::notices::Ear;
use crate::overdue::{MAX_WATCHED, Overdue};
use crate::seam::{Launch, ProcessHandle, Pulse, Refusal, Started};
use crate::spec::Dialect;

/// The queue of commands for one driver; senders wait when it is full. An operator sends one at a time.
pub(crate) const COMMAND_ROOM: usize = 16;

/// The queue of progress notes from one launch: a launch sends two.
const PROGRESS_ROOM: usize = 8;

/// The longest description of a call in a reason, in bytes: an id and an action of maximum length, and the
/// text between them.
const MAX_WHICH_BYTES: usize = 400;

/// Longer sleeps are split, because an `Instant` so far ahead may not exist.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// Commands for a driver, from an operator or from the registry.
pub(crate) enum Command {
    /// An event for the machine; answered once its actions have begun and the status is published.
    /// Boxed, because every driver allocates a block of commands at its start, and events are by far the largest.
    Tell(Box<Event>, oneshot::Sender<()>),
    /// Stop for good: a later start is refused. Answered like `Event`; an `Event` after it is never answered.
    Retire { grace: Option<Duration>, done: oneshot::Sender<()> },
    /// End the task, and with it the process, if there still is one. If the launcher has released its
    /// processes, the process keeps running, because another supervisor owns it.
    End,
    /// Answered between two events if the driver responds.
    Pulse(oneshot::Sender<()>),
    /// Return what another supervisor needs to take over the process; `None` if it is not ready.
    Standing(oneshot::Sender<Option<ReadyProcess>>),
}

/// A ready process and the counters of its instance.
pub(crate) struct ReadyProcess {
    pub(crate) instance: u32,
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) counted: Counted,
}

/// The result of one of the driver's futures.
enum Heard {
    Launched(Box<Result<Started, Refusal>>),
    Report(Report),
    /// The watch over an overdue call ended; with a report if the call was ignored.
    Watched(Option<Report>),
}

/// The progress of the launch of a generation.
type Note = (u64, Progress);

struct Running {
    process: Arc<dyn ProcessHandle>,
    live: Arc<Live>,
    dialect: Dialect,
    since: Instant,
    /// Whether a future already waits until nothing of it is left.
    awaited: bool,
    /// Reads its notices until this is dropped.
    hearing: Option<AbortOnDropHandle<()>>,
}

pub(crate) struct Driver {
    launcher: Arc<dyn Launch>,
    common: Arc<Common>,
    slot: Arc<Slot>,
    machine: Machine,
    view: View,
    /// The origin of the machine's time.
    epoch: Instant,
    commands: mpsc::Receiver<Command>,
    notes: mpsc::Sender<Note>,
    noted: mpsc::Receiver<Note>,
    /// Passed to processes whose overdue calls are watched.
    overdue: mpsc::Sender<Box<Overdue>>,
    overdue_calls: mpsc::Receiver<Box<Overdue>>,
    /// The number of overdue calls that are watched.
    watched: usize,
    work: FuturesUnordered<BoxFuture<'static, (u64, Heard)>>,
    launching: Option<(CancellationToken, Instant)>,
    /// Whether an operator asked for the next launch: it uses the disk, whatever failed to replace this plugin.
    asked: bool,
    /// When the process was started that is still in its handshake.
    spawned: Option<Instant>,
    running: Option<Running>,
    retired: bool,
    random: RandomState,
    drawn: u64,
}

impl Driver {
    pub(crate) fn new(
        launcher: Arc<dyn Launch>,
        common: Arc<Common>,
        slot: Arc<Slot>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let machine = Machine::new(common.spec.lifecycle.clone());
        let view = slot.view.load().as_ref().clone();
        let (notes, noted) = mpsc::channel(PROGRESS_ROOM);
        let (overdue, overdue_calls) = mpsc::channel(MAX_WATCHED);
        Self {
            launcher,
            common,
            slot,
            machine,
            view,
            epoch: Instant::now(),
            commands,
            notes,
            noted,
            overdue,
            overdue_calls,
            watched: 0,
            work: FuturesUnordered::new(),
            launching: None,
            asked: false,
            spawned: None,
            running: None,
            retired: false,
            random: RandomState::new(),
            drawn: 0,
        }
    }

    /// Runs until it is commanded to end, or all senders of commands are gone.
    pub(crate) async fn run(mut self) {
        if self.view.desired == Desired::Up {
            self.take(Event::Start);
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
                        Some(Command::Tell(_, _)) if self.retired => continue,
                        Some(Command::Tell(event, done)) => (*event, done),
                        Some(Command::Retire { grace, done }) => {
                            self.retired = true;
                            (Event::Stop { grace }, done)
                        }
                        Some(Command::Pulse(answer)) => {
                            // The caller may have given up.
                            let _ = answer.send(());
                            continue;
                        }
                        Some(Command::Standing(answer)) => {
                            // The caller may have given up.
                            let _ = answer.send(self.standing());
                            continue;
                        }
                        Some(Command::End) | None => break,
                    };
                    self.take(event);
                    // The caller may have given up.
                    let _ = done.send(());
                },
                Some((generation, progress)) = self.noted.recv() => self.progressed(generation, progress),
                Some(call) = self.overdue_calls.recv() => self.watch(*call),
                Some((generation, heard)) = self.work.next() => self.heard(generation, heard),
                () = sleep_until(self.epoch, wake) => self.take(Event::Tick),
            }
        }
        if let Some(running) = self.running.take() {
            running.live.fail_calls(CallsEnd::Stopped);
        }
        self.slot.live.store(None);
        self.view.coming = false;
        self.view.desired = Desired::Down;
        self.view.state = State::Stopped;
        self.show();
    }

    fn standing(&self) -> Option<ReadyProcess> {
        let running = self.running.as_ref().filter(|_| self.machine.state() == State::Ready)?;
        let counted = Counted {
            starts: self.view.starts,
            ready_since: self.view.ready_since,
            start_to_ready: self.view.start_to_ready,
        };
        Some(ReadyProcess { instance: self.slot.index, process: running.process.clone(), counted })
    }

    fn progressed(&mut self, generation: u64, progress: Progress) {
        if generation != self.machine.generation() || self.launching.is_none() {
            return;
        }
        match progress {
            Progress::Started { pid, uid } => {
                self.view.pid = Some(pid);
                self.view.uid = Some(uid);
                self.spawned = Some(Instant::now());
                self.take(Event::Report { generation, report: Report::ProcessStarted });
            }
            Progress::Handshaken => self.time_handshake(),
        }
    }

    fn heard(&mut self, generation: u64, heard: Heard) {
        let report = match heard {
            Heard::Report(report) => report,
            Heard::Watched(report) => {
                self.watched -= 1;
                let Some(report) = report else { return };
                report
            }
            Heard::Launched(result) => match *result {
                Ok(started) => {
                    self.settle_in(started);
                    Report::Launched
                }
                Err(Refusal { cause, permanent }) => {
                    // A launch that was cancelled fails as intended.
                    if self.machine.state() != State::Draining {
                        let text = inert!("it did not start: {}", cause);
                        self.common.logs.note(self.slot.index, Level::Warn, text);
                    }
                    Report::LaunchFailed { cause, refused: permanent }
                }
            },
        };
        match &report {
            Report::LaunchFailed { .. } | Report::Gone => self.moved_out(),
            Report::Exited { how } => self.tell_exit(how),
            Report::IgnoredDeadline { .. } => self.tell_ignored(generation, &report),
            _ => {}
        }
        self.take(Event::Report { generation, report });
    }

    /// Passes one event to the machine and performs what it decides.
    fn take(&mut self, event: Event) {
        let input = Input { now: self.now(), jitter: self.draw() };
        let (before, failed_before) = (self.machine.state(), self.machine.failed_checks());
        let (word, died_before) = (self.word_of(&event), self.machine.died());
        let check = match &event {
            Event::Report { report: Report::Checked(verdict), .. } => Some(verdict.clone()),
            _ => None,
        };
        self.asked |= self.asks_for_launch(&event);
        let actions = self.machine.step(event, input);
        self.count_restart(word, died_before);
        self.refresh_view(input.now, before);
        if let Some(verdict) = check {
            self.tell_check(&verdict, failed_before);
        }
        for action in actions {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Launch { generation } => self.launch(generation),
            Action::CancelLaunch => {
                if let Some((cancel, _)) = &self.launching {
                    cancel.cancel();
                }
            }
            Action::CheckHealth => self.check_health(),
            Action::AwaitCalls => {
                let Some(running) = &self.running else { return };
                running.live.close();
                let live = running.live.clone();
                self.work_on(async move {
                    live.idle().await;
                    Report::CallsDone
                });
            }
            Action::FailCalls(end) => {
                if let Some(running) = &self.running {
                    running.live.fail_calls(end);
                }
            }
            Action::AskToExit => self.ask_to_exit(),
            Action::Terminate => {
                if let Some(running) = &self.running {
                    running.process.terminate();
                }
            }
            Action::Kill => self.kill(),
        }
    }

    /// Whether an operator asked for a process that does not exist yet.
    fn asks_for_launch(&self, event: &Event) -> bool {
        match event {
            Event::Restart => true,
            Event::Start => !matches!(
                self.machine.state(),
                State::Starting | State::Handshaking | State::Ready | State::Unhealthy
            ),
            Event::Stop { .. } | Event::Report { .. } | Event::Tick => false,
        }
    }

    fn launch(&mut self, generation: u64) {
        let cancel = CancellationToken::new();
        self.launching = Some((cancel.clone(), Instant::now()));
        self.view.starts += 1;
        let (launcher, common) = (self.launcher.clone(), self.common.clone());
        let (index, before) = (self.slot.index, self.slot.before);
        let notes = self.notes.clone();
        let asked = std::mem::take(&mut self.asked);
        let failed = if asked { None } else { common.replacement_problem.load_full() };
        self.work.push(Box::pin(async move {
            let note = move |progress| {
                // A note that does not fit into the queue is lost; it is only shown while the launch is in progress.
                let _ = notes.try_send((generation, progress));
            };
            let numbers = (index, before + generation);
            let choice = Choice { kept: &common.kept, failed: failed.as_deref() };
            let launch = launcher.launch(&common.spec, numbers, choice, &common.logs, &note, &cancel);
            // The plugin's data is parsed in there: a panic must end this launch, not this task.
            let result = AssertUnwindSafe(launch).catch_unwind().await.unwrap_or_else(|_| {
                let cause = "internal error while it started; the supervisor's log has more".into();
                Err(Refusal { cause, permanent: false })
            });
            let heard = Heard::Launched(Box::new(result));
            (generation, heard)
        }));
    }

    /// After a successful launch: watches the process and opens it to calls.
    fn settle_in(&mut self, started: Started) {
        let Started { process, client, capability, report, digest, dialect, taken_over } = started;
        let watches = self.common.spec.lifecycle.kill_overdue_after.is_some();
        let overdue = watches.then(|| self.overdue.clone());
        let of = (self.common.spec.name.clone(), self.slot.index);
        let live = Arc::new(Live::new(client, of, self.machine.generation(), overdue));
        self.view.pid = Some(process.pid());
        self.view.uid = Some(process.uid());
        self.tell_jail(&report);
        self.view.last_start = Some(Arc::new(LastStart { report, digest, dialect }));
        self.view.start_to_ready = self.launching.take().map(|(_, began)| began.elapsed());
        // A process that was taken over was started elsewhere.
        if taken_over.is_none() {
            self.time_start();
        }
        self.view.ready_since = Some(SystemTime::now());
        self.view.taken_over = taken_over.is_some();
        if let Some(counted) = taken_over {
            // It was not started here.
            self.view.starts = counted.starts.max(1);
            self.view.ready_since = counted.ready_since;
            self.view.start_to_ready = counted.start_to_ready;
        }
        // The other dialects have no notices.
        let tells = dialect == Dialect::GoPlugin;
        live.hear(tells);
        self.slot.live.store(Some(live.clone()));
        self.slot.show_process(Some(Arc::downgrade(&process)));
        self.common.set_capability(capability);
        let hearing = tells.then(|| {
            let ear = Ear { common: self.common.clone(), instance: self.slot.index, live: live.clone() };
            AbortOnDropHandle::new(tokio::spawn(ear.listen()))
        });
        let watched = process.clone();
        self.work_on(async move { Report::Exited { how: watched.exited().await } });
        self.running =
            Some(Running { process, live, dialect, since: Instant::now(), awaited: false, hearing });
    }

    /// After the end of a process or a launch: nothing of it is left.
    fn moved_out(&mut self) {
        self.launching = None;
        self.running = None;
        self.slot.live.store(None);
        self.slot.show_process(None);
        self.view.pid = None;
        self.view.uid = None;
        self.view.ready_since = None;
        self.view.taken_over = false;
    }

    fn check_health(&mut self) {
        let Some(running) = &self.running else { return };
        let live = running.live.clone();
        let (epoch, timeout) = (self.epoch, self.common.spec.lifecycle.health_check_timeout);
        self.work_on(async move {
            let busy_before = live.busy_until();
            let pulse = AssertUnwindSafe(live.client.health(timeout)).catch_unwind().await;
            let answered = live.take_answered();
            Report::Checked(match pulse {
                Ok(Pulse::Serving) => Verdict::Serving,
                Ok(Pulse::NotServing) => Verdict::NotServing,
                Ok(Pulse::Failed(cause)) => Verdict::NoAnswer {
                    cause,
                    busy_until: busy_before
                        .max(live.busy_until())
                        .map(|at| at.saturating_duration_since(epoch)),
                    answered,
                },
                Err(_) => Verdict::NoAnswer { cause: "internal error".into(), busy_until: None, answered },
            })
        });
    }

    fn ask_to_exit(&mut self) {
        let Some(running) = &mut self.running else { return };
        // A server that shuts down in order waits for its streams.
        drop(running.hearing.take());
        // OpenTalon has no Shutdown: its plugins end on SIGINT, as in a terminal.
        if running.dialect == Dialect::OpenTalon {
            running.process.interrupt();
            return;
        }
        let (live, timeout) = (running.live.clone(), self.common.spec.lifecycle.grace_period);
        self.work_on(async move {
            let answer = AssertUnwindSafe(live.client.shutdown(timeout)).catch_unwind().await;
            Report::ExitAnswered { accepted: answer.unwrap_or(false) }
        });
    }

    fn kill(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.process.kill_all();
        if !std::mem::replace(&mut running.awaited, true) {
            let process = running.process.clone();
            self.work_on(async move {
                process.gone().await;
                Report::Gone
            });
        }
    }

    /// Watches whether the plugin ends an overdue call. Nothing is sent meanwhile, so that a plugin which
    /// follows the deadline that it received can finish undisturbed.
    fn watch(&mut self, call: Overdue) {
        let Some(patience) = self.common.spec.lifecycle.kill_overdue_after else { return };
        if self.watched == MAX_WATCHED {
            return;
        }
        self.watched += 1;
        let Overdue { generation, call_id, action, since, rest } = call;
        let end = since.checked_add(patience);
        let left = end.map_or(LONGEST_SLEEP, |end| end.saturating_duration_since(Instant::now()));
        let left = left.min(LONGEST_SLEEP);
        self.work.push(Box::pin(async move {
            let ignored = tokio::time::timeout(left, rest).await.is_err();
            // A call's id may come from its caller.
            let which =
                || Raw::of(format_args!("call {call_id} (action {action})")).line_within(MAX_WHICH_BYTES);
            let report = ignored.then(|| Report::IgnoredDeadline { which: which(), patience });
            (generation, Heard::Watched(report))
        }));
    }

    fn work_on(&self, work: impl Future<Output = Report> + Send + 'static) {
        let generation = self.machine.generation();
        self.work.push(Box::pin(async move { (generation, Heard::Report(work.await)) }));
    }

    fn refresh_view(&mut self, now: Moment, before: State) {
        let state = self.machine.state();
        self.view.state = state;
        self.view.desired = self.machine.desired();
        self.view.coming = self.machine.is_coming();
        self.view.reason = self.machine.reason().map(|reason| reason.describe(&self.common.spec.name));
        self.view.cause = self.machine.reason().and_then(|reason| reason.cause().cloned());
        self.view.deaths = self.machine.deaths(now);
        self.view.generation = self.slot.before + self.machine.generation();
        self.show();
        if state != before {
            self.tell_state(before, state);
        }
    }

    fn show(&self) {
        self.slot.view.store(Arc::new(self.view.clone()));
        self.common.pool.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn now(&self) -> Moment {
        self.epoch.elapsed()
    }

    /// Jitter needs no strong randomness, only that plugins do not act in step: the standard library's
    /// randomly keyed hash of a counter provides that without another crate.
    fn draw(&mut self) -> Jitter {
        self.drawn = self.drawn.wrapping_add(1);
        let hash = self.random.hash_one(self.drawn);
        Jitter(u32::try_from(hash >> 32).unwrap_or_default())
    }
}

async fn sleep_until(epoch: Instant, wake: Option<Moment>) {
    match wake {
        None => std::future::pending().await,
        Some(at) => tokio::time::sleep(at.saturating_sub(epoch.elapsed()).min(LONGEST_SLEEP)).await,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
