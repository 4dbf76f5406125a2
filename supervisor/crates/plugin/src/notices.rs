//! Unrequested messages from a process (`talon.plugin.v1.Notices`): progress and output of its calls, which scripts it runs, and
//! that its capabilities, what it lists besides, or a resource that somebody follows changed.
//!
//! The stream is opened once the process takes calls, for plugins with go-plugin's dialect, and reopened when
//! it breaks. A flood of notices costs little and affects only the plugin's own callers: messages are small,
//! most of a flood is dropped and the rest is not even read, and capability changes are rate-limited.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use talon_proto::notices::notice::Kind;
use talon_proto::notices::{Notice, ScriptStatus};
use talon_sanitize::{Raw, sanitized};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::events::{EventKind, NewEvent};
use crate::execute::{CallOutput, CallProgress, MAX_PROGRESS_MESSAGE_BYTES};
use crate::lists_throttle::ListsThrottle;
use crate::live_process::LiveProcess;
use crate::logs::Level;
use crate::plugin_context::{PluginContext, REFRESH_TIMEOUT};
use crate::progress_throttle::ProgressUpdate;
use crate::resources_throttle::ResourcesThrottle;
use crate::script_throttle::ScriptThrottle;
use crate::scripts::ScriptChange;

/// How many notices of one process are handled within a [`WINDOW`]: ten a second for each of some twenty
/// calls, which is more than a plugin may run at once by default. Further ones are dropped and counted.
const MAX_HANDLED: u32 = 256;
/// How many are read at all within a [`WINDOW`]; then reading pauses until it is over.
const MAX_READ: u32 = 4096;
/// See [`MAX_HANDLED`].
const WINDOW: Duration = Duration::from_secs(1);
/// The shortest interval between two log lines about dropped notices.
const DROP_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The delay before a broken stream is reopened; doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The shortest interval between two refreshes of capabilities that the plugin asked for. It doubles up to
/// [`REFRESH_PAUSE_MAX`] for a plugin that keeps asking, and is reset after [`IDLE_PAUSES`] without a
/// request.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);
const REFRESH_PAUSE_MAX: Duration = Duration::from_secs(60);

/// After how many intervals without a request a plugin counts as idle. With a single one, a plugin that asks
/// in every other interval would never wait longer than the first.
const IDLE_PAUSES: u32 = 3;

/// Reads the notices of one process.
#[derive(Clone)]
pub(crate) struct NoticeListener {
    pub(crate) common: Arc<PluginContext>,
    pub(crate) instance: u32,
    pub(crate) live: Arc<LiveProcess>,
}

impl NoticeListener {
    /// Reads notices until the process turns out not to serve them. The owner of the task ends it with the
    /// process.
    pub(crate) async fn listen(self) {
        let mut wait = RETRY;
        // One budget for the process: reopening the stream gives it no more.
        let mut budget = NoticeBudget::new();
        let mut throttles = Throttles::default();
        let (changed, changes) = watch::channel(());
        let refreshing = self.clone().refresh_on_change(changes);
        let hearing = async {
            while let Some(notices) = self.live.client.notices().await {
                if self.read_notices(notices, &changed, &mut budget, &mut throttles).await {
                    wait = RETRY;
                }
                tokio::time::sleep(wait).await;
                wait = (2 * wait).min(RETRY_MAX);
            }
            self.live.set_notices_enabled(false);
        };
        tokio::select! {
            () = hearing => {}
            () = refreshing => {}
        }
    }

    /// Reads one stream to its end. Returns whether anything came.
    async fn read_notices(
        &self,
        mut notices: BoxStream<'static, Notice>,
        changed: &watch::Sender<()>,
        budget: &mut NoticeBudget,
        throttles: &mut Throttles,
    ) -> bool {
        let mut any = false;
        // When the next stored progress update is due.
        let mut due: Option<Instant> = None;
        loop {
            let notice = tokio::select! {
                notice = notices.next() => notice,
                () = sleep_until(due) => {
                    due = self.publish_due();
                    continue;
                }
                () = sleep_until(throttles.lists.due(Instant::now())) => {
                    self.publish_lists(&mut throttles.lists);
                    continue;
                }
                () = sleep_until(throttles.resources.due(Instant::now())) => {
                    self.publish_resources(&mut throttles.resources);
                    continue;
                }
                () = sleep_until(throttles.scripts.due(Instant::now())) => {
                    for status in throttles.scripts.take_due(Instant::now()) {
                        budget.dropped += u64::from(!self.take_up(&status));
                    }
                    continue;
                }
            };
            let Some(notice) = notice else { return any };
            any = true;
            let heard = budget.spend().await;
            if let Some(dropped) = budget.take_dropped() {
                let text = sanitized!(
                    "{} notices were dropped: it sends more than {} a second, changed resources that nobody can follow, or more scripts than there is room for",
                    dropped,
                    MAX_HANDLED
                );
                self.common.logs.note(self.instance, Level::Warn, text);
            }
            if !heard {
                if let Some(Kind::Output(output)) = &notice.kind {
                    self.leave_out(output);
                }
                continue;
            }
            match notice.kind {
                Some(Kind::CapabilitiesChanged(_)) => {
                    changed.send_replace(());
                }
                Some(Kind::ListsChanged(changed)) => throttles.lists.record(&changed),
                Some(Kind::ResourcesUpdated(updated)) => {
                    budget.dropped += throttles.resources.record(updated)
                }
                Some(Kind::Script(status)) => budget.dropped += u64::from(!throttles.scripts.record(status)),
                Some(Kind::Output(output)) => self.pass_on(&output),
                Some(Kind::Progress(told)) => {
                    if let Some(progress) = parse_progress(&told) {
                        match self.live.record_progress(&told.call_id, progress) {
                            Some(news) => self.publish(&news),
                            None if due.is_none() => due = self.publish_due(),
                            None => {}
                        }
                    }
                }
                None => {}
            }
        }
    }

    fn pass_on(&self, output: &talon_proto::notices::CallOutput) {
        if let Some(observer) = self.live.output_observer(&output.call_id) {
            let lines = output.lines.iter().map(|line| Raw::from(line.as_str())).collect();
            observer.notify(CallOutput { lines, left_out_lines: output.left_out_lines, left_out_bytes: 0 });
        }
    }

    /// Counts the output of a dropped notice.
    fn leave_out(&self, output: &talon_proto::notices::CallOutput) {
        if let Some(observer) = self.live.output_observer(&output.call_id) {
            let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
            observer.notify(CallOutput {
                lines: Vec::new(),
                left_out_lines: output.left_out_lines.saturating_add(size(output.lines.len())),
                left_out_bytes: size(output.lines.iter().map(String::len).sum()),
            });
        }
    }

    /// Takes up what runs of a script; returns whether there was room.
    fn take_up(&self, status: &ScriptStatus) -> bool {
        let Some((script, changes)) = self.live.scripts.lock().apply(status) else { return false };
        let (name, digest) = (&script.name, script.sha256.as_deref().unwrap_or_default());
        for change in changes {
            let (kind, message) = match change {
                ScriptChange::Loaded => {
                    (EventKind::ScriptLoaded, format!("its script {name} runs: SHA-256 {digest}"))
                }
                ScriptChange::Refused => {
                    let problem = script.problem.as_deref().unwrap_or_default();
                    let runs = if digest.is_empty() { "none of it runs" } else { "the one before runs on" };
                    let message =
                        format!("a version of its script {name} was refused, and {runs}: {problem}");
                    (EventKind::ScriptRefused, message)
                }
                ScriptChange::Removed => (EventKind::ScriptRemoved, format!("its script {name} is gone")),
            };
            let mut event = NewEvent::new(kind, message)
                .plugin(&self.common.spec.name)
                .instance(self.instance)
                .field("script", name)
                .field("sha256", digest)
                .field("loads", script.loads);
            if let Some(problem) = &script.problem {
                event = event.field("reason", problem);
            }
            self.common.events.emit(event);
        }
        true
    }

    fn publish_lists(&self, lists: &mut ListsThrottle) {
        let Some(changed) = lists.take_due(Instant::now()) else { return };
        let what = match (changed.resources, changed.prompts) {
            (true, true) => "resources and prompts",
            (true, false) => "resources",
            _ => "prompts",
        };
        let event = NewEvent::new(EventKind::ListsChanged, format!("it lists other {what} than before"))
            .plugin(&self.common.spec.name)
            .instance(self.instance)
            .field("resources", changed.resources)
            .field("prompts", changed.prompts);
        self.common.events.emit(event);
    }

    fn publish_resources(&self, resources: &mut ResourcesThrottle) {
        for uri in resources.take_due(Instant::now()) {
            let event = NewEvent::new(EventKind::ResourceUpdated, format!("its resource {uri} changed"))
                .plugin(&self.common.spec.name)
                .instance(self.instance)
                .field("uri", uri);
            self.common.events.emit(event);
        }
    }

    /// Publishes the updates that are due; returns when the next one is.
    fn publish_due(&self) -> Option<Instant> {
        let (news, next) = self.live.due_updates();
        for news in &news {
            self.publish(news);
        }
        next
    }

    fn publish(&self, news: &ProgressUpdate) {
        let ProgressUpdate { call_id, action, observer: follower, progress } = news;
        if let Some(follower) = follower {
            follower.notify(progress);
        }
        let message = match (progress.message.as_str(), progress.total) {
            ("", None) => format!("{action}: {}", progress.progress),
            ("", Some(total)) => format!("{action}: {} of {total}", progress.progress),
            (message, _) => format!("{action}: {message}"),
        };
        let mut event = NewEvent::new(EventKind::CallProgress, message)
            .plugin(&self.common.spec.name)
            .instance(self.instance)
            .field("call_id", call_id)
            .field("action", action)
            .field("progress", progress.progress);
        if let Some(total) = progress.total {
            event = event.field("total", total);
        }
        self.common.events.emit(event);
    }

    /// Reads capabilities again when the plugin reports that they changed: immediately, but rate-limited.
    async fn refresh_on_change(self, mut changes: watch::Receiver<()>) {
        let mut pause = REFRESH_PAUSE;
        while changes.changed().await.is_ok() {
            self.refresh().await;
            let refreshed = Instant::now();
            tokio::time::sleep(pause).await;
            if changes.changed().await.is_err() {
                return;
            }
            changes.mark_changed();
            let quiet = refreshed.elapsed() > pause * (IDLE_PAUSES + 1);
            pause = if quiet { REFRESH_PAUSE } else { (2 * pause).min(REFRESH_PAUSE_MAX) };
        }
    }

    /// Refreshes this process only: the other instances send their own notices.
    async fn refresh(&self) {
        let asked = self.live.client.refresh_capabilities(REFRESH_TIMEOUT);
        let note = match tokio::time::timeout(REFRESH_TIMEOUT, asked).await {
            Ok(Ok(Some(capability))) => {
                self.common.set_capability(capability);
                return;
            }
            Ok(Ok(None)) => {
                "it reports that its tools changed, but has no RefreshCapabilities: the known ones stay"
                    .into()
            }
            Ok(Err(cause)) => {
                sanitized!("it reports that its tools changed, but they could not be read: {}", cause)
            }
            Err(_) => sanitized!(
                "it reports that its tools changed, but did not declare them within {} s",
                REFRESH_TIMEOUT.as_secs()
            ),
        };
        self.common.logs.note(self.instance, Level::Warn, note);
    }
}

/// Validates a progress report; `None` if its value makes no sense.
fn parse_progress(told: &talon_proto::notices::Progress) -> Option<CallProgress> {
    let amount = |value: f64| value.is_finite() && value >= 0.0;
    amount(told.progress).then(|| CallProgress {
        progress: told.progress,
        total: told.total.filter(|total| amount(*total)),
        message: Raw::from(&told.message).line_within(MAX_PROGRESS_MESSAGE_BYTES),
    })
}

/// What is merged before it is published.
#[derive(Debug, Default)]
struct Throttles {
    lists: ListsThrottle,
    resources: ResourcesThrottle,
    scripts: ScriptThrottle,
}

/// Limits how many notices are handled.
struct NoticeBudget {
    began: Instant,
    read: u32,
    dropped: u64,
    last_report: Option<Instant>,
}

impl NoticeBudget {
    fn new() -> Self {
        Self { began: Instant::now(), read: 0, dropped: 0, last_report: None }
    }

    /// Counts a notice and returns whether to handle it. Waits if there are far too many.
    async fn spend(&mut self) -> bool {
        if self.read >= MAX_READ {
            tokio::time::sleep_until(self.began + WINDOW).await;
        }
        if self.began.elapsed() >= WINDOW {
            (self.began, self.read) = (Instant::now(), 0);
        }
        self.read += 1;
        let heard = self.read <= MAX_HANDLED;
        self.dropped += u64::from(!heard);
        heard
    }

    /// How many notices were dropped since the last report, if the next report is due.
    fn take_dropped(&mut self) -> Option<u64> {
        let due = self.last_report.is_none_or(|told| told.elapsed() >= DROP_REPORT_INTERVAL);
        if self.dropped == 0 || !due {
            return None;
        }
        self.last_report = Some(Instant::now());
        Some(std::mem::take(&mut self.dropped))
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;
