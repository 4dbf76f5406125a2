//! What happened to the process: the events that the driver makes of it for its machine.

use std::sync::Arc;
use std::time::SystemTime;

use talon_plugin_config::spec::Dialect;
use talon_sanitize::{Raw, sanitized};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::command::ReadyProcess;
use super::{Driver, RunningProcess, TaskOutcome};
use crate::handover::InstanceCounters;
use crate::instances::LastStart;
use crate::lifecycle::State;
use crate::lifecycle::event::{MachineEvent, ProcessReport};
use crate::live_process::LiveProcess;
use crate::logs::Level;
use crate::notices::NoticeListener;
use crate::source_events::EventIntake;
use crate::traits::start::{LaunchProgress, StartFailure, StartedProcess};

impl Driver {
    pub(super) fn ready_process(&self) -> Option<ReadyProcess> {
        let running = self.running.as_ref().filter(|_| self.machine.state() == State::Ready)?;
        let counted = InstanceCounters {
            starts: self.status.starts,
            ready_since: self.status.ready_since,
            start_to_ready: self.status.start_to_ready,
        };
        Some(ReadyProcess { instance: self.slot.index, process: running.process.clone(), counted })
    }

    pub(super) fn on_progress(&mut self, generation: u64, progress: LaunchProgress) {
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

    pub(super) fn on_outcome(&mut self, generation: u64, heard: TaskOutcome) {
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
                Err(StartFailure { cause, kind }) => {
                    // A launch that was cancelled fails as intended.
                    if self.machine.state() != State::Draining {
                        let text = sanitized!("it did not start: {}", cause);
                        self.common.logs.note(self.slot.index, Level::Warn, text);
                    }
                    ProcessReport::LaunchFailed { cause, kind }
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
        let telling = tells.then(|| {
            let intake =
                EventIntake { common: self.common.clone(), instance: self.slot.index, live: live.clone() };
            AbortOnDropHandle::new(tokio::spawn(intake.run()))
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
            event_task: telling,
        });
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
}
