//! Fetches data from the supervisor: polls its status, follows its events, and follows the log lines of
//! the selected plugin. Each task reconnects after a restart of the supervisor.

use std::time::Duration;

use talon_proto::host::{GetPluginRequest, GetStatusRequest, LogsRequest, WatchEventsRequest};
use talon_sanitize::{Raw, Sanitized};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tonic::Status;

use crate::host::{Host, with_timeout};
use crate::model::Update;
use crate::reading::{Reading, neutralized};
use crate::timeline::TimelineEntry;

/// Queued updates for the screen. If the queue is full, the tasks read more slowly, and the supervisor's own
/// limits apply.
const QUEUE_CAPACITY: usize = 256;
/// Stored log lines of a plugin to fetch first: a screenful.
const TAIL: u32 = 200;
/// Delay before the next reconnect attempt, at first and after many attempts. A restart takes a second or
/// two.
const MIN_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// The tasks that fetch data, and the queue of their updates.
pub(crate) struct Feed {
    updates: mpsc::Receiver<Update>,
    interval: watch::Sender<Duration>,
    watched_plugin: watch::Sender<Option<String>>,
    tasks: JoinSet<()>,
}

impl Feed {
    pub(crate) fn start(host: &Host, interval: Duration) -> Self {
        let (tell, updates) = mpsc::channel(QUEUE_CAPACITY);
        let (interval, every) = watch::channel(interval);
        let (watched_plugin, about) = watch::channel(None);
        let mut tasks = JoinSet::new();
        tasks.spawn(poll_status(host.clone(), every, tell.clone()));
        tasks.spawn(follow_events(host.clone(), tell.clone()));
        tasks.spawn(watch_plugin(host.clone(), about, tell));
        Self { updates, interval, watched_plugin, tasks }
    }

    /// Spawns another task, which may fail.
    #[cfg(test)]
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Sets the polling interval and the plugin to follow.
    pub(crate) fn set_targets(&self, interval: Duration, plugin: Option<String>) {
        self.interval.send_if_modified(|now| std::mem::replace(now, interval) != interval);
        self.watched_plugin.send_if_modified(|now| {
            let changed = *now != plugin;
            *now = plugin;
            changed
        });
    }

    /// The next update.
    ///
    /// # Errors
    /// A task panicked: the caller has to exit, since no further updates would arrive.
    pub(crate) async fn next(&mut self) -> Result<Update, JoinError> {
        loop {
            tokio::select! {
                told = self.updates.recv() => {
                    if let Some(told) = told {
                        return Ok(told);
                    }
                }
                // Tasks only end by a panic.
                Some(ended) = self.tasks.join_next() => ended?,
            }
        }
    }

    /// An update that is already queued.
    pub(crate) fn try_next(&mut self) -> Option<Update> {
        self.updates.try_recv().ok()
    }
}

/// Exponential backoff between failed attempts.
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(MIN_BACKOFF)
    }

    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_BACKOFF);
    }
}

/// Polls the status until the receiver is dropped.
async fn poll_status(host: Host, mut every: watch::Receiver<Duration>, tell: mpsc::Sender<Update>) {
    let mut pause = Backoff::new();
    loop {
        match with_timeout(host.client().get_status(GetStatusRequest {})).await {
            Ok(status) => {
                pause = Backoff::new();
                if tell.send(Update::Reading(Box::new(Reading::now(status.get_ref())))).await.is_err() {
                    return;
                }
                let interval = *every.borrow_and_update();
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    changed = every.changed() => if changed.is_err() { return },
                }
            }
            Err(status) => {
                if tell.send(Update::Gone(host.explain(&status))).await.is_err() {
                    return;
                }
                pause.wait().await;
            }
        }
    }
}

async fn follow_events(host: Host, tell: mpsc::Sender<Update>) {
    let mut pause = Backoff::new();
    loop {
        let mut client = host.client();
        match with_timeout(client.watch_events(WatchEventsRequest::default())).await {
            Ok(stream) => {
                let mut stream = stream.into_inner();
                while let Ok(Some(event)) = stream.message().await {
                    pause = Backoff::new();
                    let Some(happened) = TimelineEntry::from_event(&event) else { continue };
                    if tell.send(Update::Event(happened)).await.is_err() {
                        return;
                    }
                }
            }
            Err(status) => report_refusal(&host, &status, &tell).await,
        }
        if tell.is_closed() {
            return;
        }
        pause.wait().await;
    }
}

/// Follows the selected plugin, and switches when another one is selected.
async fn watch_plugin(host: Host, mut about: watch::Receiver<Option<String>>, tell: mpsc::Sender<Update>) {
    let mut pause = Backoff::new();
    loop {
        let wanted = about.borrow_and_update().clone();
        let following = async {
            match &wanted {
                Some(plugin) => follow(&host, plugin, &tell, &mut pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = following => if tell.is_closed() { return },
            changed = about.changed() => {
                if changed.is_err() {
                    return;
                }
                pause = Backoff::new();
            }
        }
    }
}

/// Follows one plugin's actions and log lines until the stream ends, and then waits for the backoff.
async fn follow(host: &Host, plugin: &str, tell: &mpsc::Sender<Update>, pause: &mut Backoff) {
    let request = GetPluginRequest { name: plugin.to_owned(), for_model: false };
    let about = with_timeout(host.client().get_plugin(request)).await;
    let capabilities = about.ok().and_then(|about| about.into_inner().capabilities);
    let actions: Vec<Sanitized> = capabilities
        .iter()
        .flat_map(|known| &known.actions)
        .map(|action| neutralized(&action.name))
        .collect();
    if tell.send(Update::PluginDetails(Raw::from(plugin).line(), actions)).await.is_err() {
        return;
    }
    let request = LogsRequest { plugin: plugin.to_owned(), follow: true, tail: TAIL };
    match with_timeout(host.client().logs(request)).await {
        Ok(lines) => {
            let mut lines = lines.into_inner();
            while let Ok(Some(line)) = lines.message().await {
                *pause = Backoff::new();
                if tell.send(Update::Line(TimelineEntry::from_log_line(&line))).await.is_err() {
                    return;
                }
            }
        }
        Err(status) => report_refusal(host, &status, tell).await,
    }
    pause.wait().await;
}

/// Reports a refusal by the supervisor. A lost connection is reported by the status poll.
async fn report_refusal(host: &Host, status: &Status, tell: &mpsc::Sender<Update>) {
    if matches!(status.code(), tonic::Code::PermissionDenied | tonic::Code::ResourceExhausted) {
        // The receiver is dropped only at exit.
        let _ = tell.send(Update::Withheld(host.explain(status))).await;
    }
}
