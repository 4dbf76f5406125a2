//! Keeps one service running.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use talon_sanitize::{Sanitized, sanitized};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::hooks::ServiceHooks;
use super::shared::Shared;
use crate::jail_report::not_enforced;
use crate::launcher::Launch;
use crate::lifecycle::backoff::{self, Jitter};
use crate::lifecycle::reason::{format_duration, truncate};
use crate::lifecycle::restart_counter::RestartCounter;
use crate::logs::{Level, LogSink};
use crate::service_spec::ServiceSpec;
use crate::traits::process::ProcessHandle;

/// The time window in which exits make the waits longer. Five minutes, as the default of plugins: a service
/// that ran longer is restarted at once.
const RESTART_WINDOW: Duration = Duration::from_secs(300);

/// The most exits that are counted: twice the number of doublings from a millisecond to an hour. More exits
/// make no wait longer.
const MAX_COUNTED_EXITS: u32 = 44;

/// How long a killed process may take to exit before a stop leaves it to its monitor.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// The instance number in its log lines; a service has only one process.
const INSTANCE: u32 = 0;

pub(super) struct Driver {
    pub(super) launcher: Arc<dyn Launch>,
    pub(super) spec: ServiceSpec,
    pub(super) hooks: Arc<dyn ServiceHooks>,
    pub(super) logs: LogSink,
    pub(super) shared: Arc<Shared>,
    pub(super) stop: CancellationToken,
}

impl Driver {
    /// Runs until the service is stopped.
    pub(super) async fn run(self) {
        let epoch = Instant::now();
        let random = RandomState::new();
        let mut tally = RestartCounter::new(RESTART_WINDOW, MAX_COUNTED_EXITS);
        for start in 0_u64.. {
            if self.stop.is_cancelled() {
                return;
            }
            self.shared.status().restarts = start;
            let (how, ran) = self.run_once().await;
            let how = truncate(how);
            let again_in = (!self.stop.is_cancelled()).then(|| {
                let ends = tally.record(epoch.elapsed());
                let jitter = Jitter(u32::try_from(random.hash_one(start) >> 32).unwrap_or_default());
                match ends {
                    // Its clients wait, and one exit within the window says nothing about the next start.
                    1 if ran => Duration::ZERO,
                    _ => backoff::wait(self.spec.backoff_initial, self.spec.backoff_max, ends, jitter),
                }
            });
            self.report_exit(how, again_in);
            let Some(wait) = again_in else { return };
            if self.stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
        }
    }

    /// Runs one process from its start until all of it is gone. Returns how it ended, and whether it ran at
    /// all.
    async fn run_once(&self) -> (Sanitized, bool) {
        // The launcher has its own time limit. A stop during the start takes effect once the process runs.
        let started = match self.launcher.service(&self.spec, &self.logs).await {
            Ok(started) => started,
            Err(refusal) => return (sanitized!("could not be started: {}", refusal.cause), false),
        };
        let process = started.process;
        let (pid, uid) = (process.pid(), process.uid());
        self.note_start(pid, uid, &started.report);
        self.hooks.on_started(started.control, pid, uid);
        let exit = tokio::select! {
            biased;
            exit = process.exited() => exit,
            () = self.stop.cancelled() => self.stop_process(&*process).await,
            () = self.shared.restart.notified() => {
                process.kill_all();
                process.exited().await
            }
        };
        {
            let mut status = self.shared.status();
            (status.running, status.pid) = (false, None);
        }
        // Its child processes are killed, too, before the next process uses its home.
        process.kill_all();
        self.wait_until_gone(&*process).await;
        let how = match started.last_output.await {
            // After a requested stop its last output is not part of the message; it is in its log.
            Some(words) if !self.stop.is_cancelled() => {
                sanitized!("ended with {}; its last words: {}", exit, words)
            }
            _ => sanitized!("ended with {}", exit),
        };
        (how, true)
    }

    /// Waits until all of the process is gone; during a stop for a bounded time.
    async fn wait_until_gone(&self, process: &dyn ProcessHandle) {
        let bound = async {
            self.stop.cancelled().await;
            sleep(KILL_WAIT).await;
        };
        tokio::select! {
            biased;
            () = process.gone() => {}
            () = bound => tracing::error!(
                service = %self.spec.name, pid = process.pid(), "still there after SIGKILL; left to its monitor"
            ),
        }
    }

    /// Stops the process: first by request, then SIGTERM, then SIGKILL.
    async fn stop_process(&self, process: &dyn ProcessHandle) -> Sanitized {
        let grace = *self.shared.grace();
        self.hooks.on_stopping();
        if let Ok(exit) = timeout(grace, process.exited()).await {
            return exit;
        }
        process.terminate();
        if let Ok(exit) = timeout(grace, process.exited()).await {
            return exit;
        }
        process.kill_all();
        timeout(KILL_WAIT, process.exited()).await.unwrap_or_else(|_| "no exit status after SIGKILL".into())
    }

    fn note_start(&self, pid: u32, uid: u32, report: &talon_jail::Report) {
        self.logs.note(INSTANCE, Level::Info, format!("started as pid {pid}, uid {uid}"));
        let lacking = not_enforced(report);
        let mut status = self.shared.status();
        for text in lacking.iter().filter(|text| !status.not_enforced.contains(text)) {
            self.logs.note(INSTANCE, Level::Warn, sanitized!("not enforced: {}", text));
        }
        (status.pid, status.uid, status.running) = ((pid != 0).then_some(pid), uid, true);
        status.not_enforced = lacking;
    }

    fn report_exit(&self, how: Sanitized, again_in: Option<Duration>) {
        match again_in {
            Some(wait) => {
                let when = match wait {
                    Duration::ZERO => "at once".into(),
                    wait => sanitized!("in {}", format_duration(wait)),
                };
                let text = sanitized!("{}; it is started again {}", how, when);
                self.logs.note(INSTANCE, Level::Error, text);
            }
            None => self.logs.note(INSTANCE, Level::Info, how.clone()),
        }
        self.shared.status().last_end = Some(how.clone());
        self.hooks.on_ended(&how, again_in);
    }
}
