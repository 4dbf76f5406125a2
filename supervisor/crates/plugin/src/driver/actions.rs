//! Performs what the machine decides. What takes time becomes a future that the driver polls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use talon_plugin_client::HealthStatus;
use talon_plugin_config::spec::Dialect;
use talon_sanitize::Raw;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Driver, LONGEST_SLEEP, TaskOutcome};
use crate::launch::{DiskChoice, ProgramChoice};
use crate::lifecycle::event::{CheckResult, FailureKind, MachineAction, ProcessReport};
use crate::live_process::LiveProcess;
use crate::overdue_call::{MAX_WATCHED, OverdueCall};
use crate::traits::process::ProcessHandle;
use crate::traits::start::StartFailure;

/// The longest description of a call in a reason, in bytes: an id and an action of maximum length, and the
/// text between them.
const MAX_CALL_LABEL_BYTES: usize = 400;

impl Driver {
    pub(super) fn perform(&mut self, action: MachineAction) {
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

    fn launch(&mut self, generation: u64) {
        let cancel = CancellationToken::new();
        self.launching = Some((cancel.clone(), Instant::now()));
        self.status.starts += 1;
        let (launcher, common) = (self.launcher.clone(), self.common.clone());
        let (index, before) = (self.slot.index, self.slot.base_generation);
        let notes = self.progress_sender.clone();
        let asked = std::mem::take(&mut self.start_requested);
        let failed = common.replacement_problem.load_full();
        self.work.push(Box::pin(async move {
            let note = move |progress| {
                // A note that does not fit into the queue is lost; it is only shown while the launch is in
                // progress.
                let _ = notes.try_send((generation, progress));
            };
            let numbers = (index, before + generation);
            let disk = match &failed {
                _ if asked => DiskChoice::Always,
                Some(failed) => DiskChoice::Failed(failed),
                None => DiskChoice::UnlessGone,
            };
            let choice = ProgramChoice { cache: &common.last_good, disk };
            let launch = launcher.launch(&common.spec, numbers, choice, &common.logs, &note, &cancel);
            // The plugin's data is parsed in there: a panic must end this launch, not this task.
            let result = AssertUnwindSafe(launch).catch_unwind().await.unwrap_or_else(|_| {
                let cause = "internal error while it started; the supervisor's log has more".into();
                Err(StartFailure { cause, kind: FailureKind::Passing })
            });
            let heard = TaskOutcome::Launched(Box::new(result));
            (generation, heard)
        }));
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
        drop(running.event_task.take());
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
    pub(super) fn watch_overdue(&mut self, call: OverdueCall) {
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

    /// Watches whether the process floods a connection, until it ends.
    pub(super) fn watch_frames(&self, process: &Arc<dyn ProcessHandle>, live: &Arc<LiveProcess>) {
        let (process, live, generation) = (process.clone(), live.clone(), self.machine.generation());
        self.work.push(Box::pin(async move {
            let flood = tokio::select! {
                flood = live.client.flood() => Some(flood),
                _ = process.exited() => None,
            };
            (generation, TaskOutcome::Flooded(flood))
        }));
    }

    pub(super) fn push_work(&self, work: impl Future<Output = ProcessReport> + Send + 'static) {
        let generation = self.machine.generation();
        self.work.push(Box::pin(async move { (generation, TaskOutcome::Report(work.await)) }));
    }
}
