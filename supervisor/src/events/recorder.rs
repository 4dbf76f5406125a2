//! The task that turns the supervisor's events into numbered ones, and its handle.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use prost::Message as _;
use talon_event_log::{AcknowledgeError, EventLog, EventReader, Settings};
use talon_plugin::{Event, Events};
use talon_proto::host::HostEvent;
use talon_sanitize::sanitized;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::classifier::Classifier;
use super::coalescer::Coalescer;
use super::host_event::{HostEventKind, NewHostEvent, Severity};
use super::log_state::LogState;
use super::plugin_log::PluginEventLog;
use super::queue::{Encoded, Queue};
use crate::blocking::blocking;
use crate::config::Config;
use crate::to_wire::unix_ms;

/// The directory below the one for data.
const DIRECTORY: &str = "events";
/// How long after a failure the disk is tried again: often enough that a full disk that has room again is noticed before the queue
/// is full, seldom enough for the log.
const RETRY: Duration = Duration::from_secs(2);

/// How long a close may take: a disk that hangs must not hold up the end of the supervisor.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

const RECORDED: &str = "talon_host_events_total";
const DROPPED: &str = "talon_host_events_dropped_total";

/// Records events, and gives them out. Cheap to clone. It never holds up who emits an event: what it cannot take up in time is
/// lost and counted.
#[derive(Clone)]
pub struct EventRecorder {
    shared: Arc<Shared>,
    /// The events that plugins tell.
    plugins: PluginEventLog,
    commands: mpsc::Sender<Command>,
}

struct Shared {
    settings: Settings,
    /// `None` while it cannot be opened, or another supervisor has it.
    log: Mutex<Option<EventLog>>,
    state: watch::Sender<LogState>,
}

enum Command {
    Close(oneshot::Sender<()>),
    Resume,
}

impl EventRecorder {
    /// Opens the log as configured, and records what `unrecorded` has and gets (of `events`, without calls). If the log cannot be opened, that is reported and tried again; the
    /// supervisor runs without it. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(config: &Config, events: &Events, unrecorded: Receiver<Arc<Event>>) -> Self {
        let settings = Settings {
            dir: config.state.data_dir.join(DIRECTORY),
            max_bytes: config.events.max_bytes.get(),
            max_events: usize::try_from(config.events.max_events).unwrap_or(usize::MAX),
            first_number: 1,
        };
        let plugins = PluginEventLog::start(config);
        Self::start_with(settings, plugins, config.events.window.get(), events, unrecorded)
    }

    fn start_with(
        settings: Settings,
        plugins: PluginEventLog,
        window: Duration,
        events: &Events,
        unrecorded: Receiver<Arc<Event>>,
    ) -> Self {
        metrics::counter!(DROPPED).absolute(0);
        let (commands, receiver) = mpsc::channel(1);
        let shared = Arc::new(Shared { settings, log: Mutex::new(None), state: watch::Sender::default() });
        let mut task = RecorderTask {
            shared: Arc::clone(&shared),
            events: events.clone(),
            news: unrecorded,
            commands: receiver,
            classifier: Classifier::default(),
            coalescer: Coalescer::new(window),
            queue: Queue::default(),
            writing: None,
            retry_at: None,
            is_paused: false,
            closing: Vec::new(),
        };
        // Before anything happens that it has to record; it reads some megabytes at most.
        let written = shared.write(0, Vec::new());
        task.finish_write(written);
        tokio::spawn(task.run());
        Self { shared, plugins, commands }
    }

    /// The log of events that plugins tell.
    pub(crate) fn plugins(&self) -> &PluginEventLog {
        &self.plugins
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<LogState> {
        self.shared.state.subscribe()
    }

    /// Records what a subscriber has acknowledged; `None` if the log is not open.
    pub(crate) async fn acknowledge(
        &self,
        subscriber: &'static str,
        through: u64,
    ) -> Option<Result<u64, AcknowledgeError>> {
        let shared = Arc::clone(&self.shared);
        blocking(move || Some(shared.log.lock().as_mut()?.acknowledge(subscriber, through))).await
    }

    /// Writes what is held and what waits, and closes the log, so that another supervisor can open it. What happens from now on
    /// waits.
    pub(crate) async fn close(&self) {
        self.plugins.close().await;
        let (closed, wait) = oneshot::channel();
        if self.commands.send(Command::Close(closed)).await.is_ok() {
            // Errors mean that the task has ended, and the log with it, or that the disk hangs: then the log is closed when this
            // process ends.
            let _ = timeout(CLOSE_TIMEOUT, wait).await;
        }
    }

    /// Opens the log again.
    pub(crate) async fn resume(&self) {
        let _ = self.commands.send(Command::Resume).await;
        self.plugins.resume().await;
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("dir", &self.shared.settings.dir).finish_non_exhaustive()
    }
}

/// What an attempt to write came to.
struct WriteOutcome {
    batch: Vec<Encoded>,
    dropped: u64,
    result: Result<(), String>,
    /// The log, if this attempt opened it: what was wrong with it, and its events.
    opened: Option<(Vec<String>, EventReader)>,
}

impl Shared {
    /// Opens the log if it is not open, and writes a batch, after word of those that were dropped before it. It blocks.
    fn write(&self, dropped: u64, batch: Vec<Encoded>) -> WriteOutcome {
        let mut outcome = WriteOutcome { batch, dropped, result: Ok(()), opened: None };
        let mut log = self.log.lock();
        let open = match &mut *log {
            Some(open) => open,
            closed => {
                let settings = Settings { first_number: unix_ms(SystemTime::now()), ..self.settings.clone() };
                match EventLog::open(&settings) {
                    Ok(opened) => {
                        outcome.opened = Some((opened.findings, opened.log.reader()));
                        closed.insert(opened.log)
                    }
                    Err(error) => {
                        outcome.result = Err(error.to_string());
                        return outcome;
                    }
                }
            }
        };
        let lost = (outcome.dropped > 0).then(|| lost(outcome.dropped).encode());
        let events: Vec<Vec<u8>> =
            lost.into_iter().chain(outcome.batch.iter().map(|event| event.bytes.clone())).collect();
        if !events.is_empty()
            && let Err(error) = open.append(&events)
        {
            outcome.result = Err(format!("{}: {error}", self.settings.dir.display()));
            // Opened anew at the next attempt: its directory may have been removed.
            *log = None;
        }
        outcome
    }
}

/// The event in place of those that got no number.
fn lost(count: u64) -> NewHostEvent {
    NewHostEvent {
        kind: HostEventKind::Gap,
        plugin: String::new(),
        severity: Severity::Warning,
        summary: sanitized!(
            "{} events were lost before they were recorded: too many at once, or the disk did not take them",
            count
        ),
        details: talon_sanitize::Sanitized::default(),
        at: SystemTime::now(),
        fields: [("dropped", sanitized!("{}", count))].into(),
        count: 1,
    }
}

struct RecorderTask {
    shared: Arc<Shared>,
    events: Events,
    news: Receiver<Arc<Event>>,
    commands: mpsc::Receiver<Command>,
    classifier: Classifier,
    coalescer: Coalescer,
    queue: Queue,
    writing: Option<JoinHandle<WriteOutcome>>,
    /// Set after a failure.
    retry_at: Option<Instant>,
    /// Nothing is written: another supervisor may have the log.
    is_paused: bool,
    /// They wait until everything is written.
    closing: Vec<oneshot::Sender<()>>,
}

impl RecorderTask {
    async fn run(mut self) {
        loop {
            self.begin_write();
            self.close_if_done().await;
            let wake = self.wake_at();
            tokio::select! {
                news = self.news.recv() => match news {
                    Ok(event) => self.take(&event),
                    Err(RecvError::Lagged(count)) => self.record_lost(count),
                    Err(RecvError::Closed) => return,
                },
                Some(command) = self.commands.recv() => match command {
                    Command::Close(closed) => {
                        self.take_all();
                        let held = self.coalescer.flush();
                        self.enqueue(held);
                        self.closing.push(closed);
                    }
                    Command::Resume => self.is_paused = false,
                },
                written = finished(&mut self.writing) => {
                    self.writing = None;
                    match written {
                        Ok(written) => self.finish_write(written),
                        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
                    }
                }
                () = wake_at(wake) => {
                    let due = self.coalescer.due(Instant::now());
                    self.enqueue(due);
                }
            }
        }
    }

    fn take(&mut self, event: &Event) {
        if let Some(event) = self.classifier.classify(event) {
            let out = self.coalescer.push(event, Instant::now());
            self.enqueue(out);
        }
    }

    /// Takes what was emitted before now.
    fn take_all(&mut self) {
        // No more than there are now, since others go on emitting.
        for _ in 0..=self.news.len() {
            match self.news.try_recv() {
                Ok(event) => self.take(&event),
                Err(TryRecvError::Lagged(count)) => self.record_lost(count),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Counts events of the supervisor that nobody looked at: there were too many at once.
    fn record_lost(&mut self, count: u64) {
        self.events.record_lost(count);
        self.queue.record_lost(count);
        metrics::counter!(DROPPED).increment(count);
    }

    fn enqueue(&mut self, events: Vec<NewHostEvent>) {
        for event in events {
            let dropped = self.queue.push(&event);
            metrics::counter!(DROPPED).increment(dropped);
        }
    }

    fn is_open(&self) -> bool {
        self.shared.state.borrow().reader.is_some()
    }

    /// Whether something is to be written, or the log to be opened.
    fn has_work(&self) -> bool {
        !self.is_paused && (!self.queue.is_empty() || !self.is_open())
    }

    fn wake_at(&self) -> Option<Instant> {
        let retry = self.retry_at.filter(|_| self.has_work() && self.writing.is_none());
        [retry, self.coalescer.next_due()].into_iter().flatten().min()
    }

    fn begin_write(&mut self) {
        let waits = self.retry_at.is_some_and(|at| at > Instant::now());
        if self.writing.is_some() || waits || !self.has_work() {
            return;
        }
        self.retry_at = None;
        let (dropped, batch) = self.queue.take_batch();
        let shared = Arc::clone(&self.shared);
        self.writing = Some(tokio::task::spawn_blocking(move || shared.write(dropped, batch)));
    }

    fn finish_write(&mut self, outcome: WriteOutcome) {
        let WriteOutcome { batch, dropped, result, opened } = outcome;
        let failed_before = self.shared.state.borrow().problem.is_some();
        let reader = opened.map(|(findings, reader)| {
            for finding in findings {
                tracing::warn!("event log: {finding}");
            }
            self.resume_from(&reader);
            reader
        });
        match &result {
            Ok(()) => {
                if failed_before {
                    tracing::warn!("the event log works again");
                }
                let lost = (dropped > 0).then_some(HostEventKind::Gap.as_str());
                for kind in lost.into_iter().chain(batch.iter().map(|event| event.kind)) {
                    metrics::counter!(RECORDED, "kind" => kind).increment(1);
                }
            }
            Err(problem) => {
                if !failed_before {
                    tracing::error!("the event log fails, and events wait in memory: {problem}");
                }
                let over = self.queue.put_back(dropped, batch);
                metrics::counter!(DROPPED).increment(over);
                self.retry_at = Some(Instant::now() + RETRY);
            }
        }
        // It also tells subscribers of new events.
        self.shared.state.send_modify(|state| {
            state.problem = result.err();
            if let Some(reader) = reader {
                state.reader = Some(reader);
            }
        });
    }

    /// Takes up what the log says of earlier failures.
    fn resume_from(&mut self, reader: &EventReader) {
        let mut after = reader.oldest().saturating_sub(1);
        while let Ok(page) = reader.page_after(after) {
            let Some((last, _)) = page.events.last() else { return };
            after = *last;
            for (_, bytes) in &page.events {
                // One that a newer version wrote in another way says nothing to this one.
                if let Ok(event) = HostEvent::decode(bytes.as_slice()) {
                    self.classifier.resume(&event);
                }
            }
        }
    }

    /// Closes the log for those who asked, once everything is written or cannot be.
    async fn close_if_done(&mut self) {
        let is_done = self.queue.is_empty() || self.retry_at.is_some() || self.is_paused;
        if self.closing.is_empty() || self.writing.is_some() || !is_done {
            return;
        }
        self.is_paused = true;
        let shared = Arc::clone(&self.shared);
        blocking(move || *shared.log.lock() = None).await;
        self.shared.state.send_modify(|state| state.reader = None);
        for closed in self.closing.drain(..) {
            // Nobody may wait any more.
            let _ = closed.send(());
        }
    }
}

async fn finished(
    writing: &mut Option<JoinHandle<WriteOutcome>>,
) -> Result<WriteOutcome, tokio::task::JoinError> {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}

async fn wake_at(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
