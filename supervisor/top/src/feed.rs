//! Fetches data from the supervisor: polls its status, follows its events, and follows the log lines of
//! the selected plugin. Each task reconnects after a restart of the supervisor.

use std::time::Duration;

use talon_proto::host::{GetPluginRequest, GetStatusRequest, LogsRequest, WatchEventsRequest};
use talon_sanitize::{Raw, Sanitized};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tonic::Status;

use crate::happened::Happened;
use crate::host::{Host, prompt};
use crate::model::Told;
use crate::reading::{Reading, inert};

/// Queued updates for the screen. If the queue is full, the tasks read more slowly, and the supervisor's own limits
/// apply.
const NEWS: usize = 256;
/// Stored log lines of a plugin to fetch first: a screenful.
const TAIL: u32 = 200;
/// Delay before the next reconnect attempt, at first and after many attempts. A restart takes a second or two.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The tasks that fetch data, and the queue of their updates.
pub(crate) struct Feed {
    news: mpsc::Receiver<Told>,
    interval: watch::Sender<Duration>,
    wanted: watch::Sender<Option<String>>,
    tasks: JoinSet<()>,
}

impl Feed {
    pub(crate) fn start(host: &Host, interval: Duration) -> Self {
        let (tell, news) = mpsc::channel(NEWS);
        let (interval, every) = watch::channel(interval);
        let (wanted, about) = watch::channel(None);
        let mut tasks = JoinSet::new();
        tasks.spawn(statuses(host.clone(), every, tell.clone()));
        tasks.spawn(events(host.clone(), tell.clone()));
        tasks.spawn(one_plugin(host.clone(), about, tell));
        Self { news, interval, wanted, tasks }
    }

    /// Spawns another task, which may fail.
    #[cfg(test)]
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Sets the polling interval and the plugin to follow.
    pub(crate) fn want(&self, interval: Duration, plugin: Option<String>) {
        self.interval.send_if_modified(|now| std::mem::replace(now, interval) != interval);
        self.wanted.send_if_modified(|now| {
            let changed = *now != plugin;
            *now = plugin;
            changed
        });
    }

    /// The next update.
    ///
    /// # Errors
    /// A task panicked: the caller has to exit, since no further updates would arrive.
    pub(crate) async fn next(&mut self) -> Result<Told, JoinError> {
        loop {
            tokio::select! {
                told = self.news.recv() => {
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
    pub(crate) fn more(&mut self) -> Option<Told> {
        self.news.try_recv().ok()
    }
}

/// Exponential backoff between failed attempts.
struct Pause(Duration);

impl Pause {
    fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// Polls the status until the receiver is dropped.
async fn statuses(host: Host, mut every: watch::Receiver<Duration>, tell: mpsc::Sender<Told>) {
    let mut pause = Pause::new();
    loop {
        match prompt(host.client().get_status(GetStatusRequest {})).await {
            Ok(status) => {
                pause = Pause::new();
                if tell.send(Told::Reading(Box::new(Reading::now(status.get_ref())))).await.is_err() {
                    return;
                }
                let interval = *every.borrow_and_update();
                tokio::select! {
                    () = tokio::time::sleep(interval) => {}
                    changed = every.changed() => if changed.is_err() { return },
                }
            }
            Err(status) => {
                if tell.send(Told::Gone(host.explain(&status))).await.is_err() {
                    return;
                }
                pause.wait().await;
            }
        }
    }
}

async fn events(host: Host, tell: mpsc::Sender<Told>) {
    let mut pause = Pause::new();
    loop {
        let mut client = host.client();
        match prompt(client.watch_events(WatchEventsRequest::default())).await {
            Ok(stream) => {
                let mut stream = stream.into_inner();
                while let Ok(Some(event)) = stream.message().await {
                    pause = Pause::new();
                    let Some(happened) = Happened::event(&event) else { continue };
                    if tell.send(Told::Event(happened)).await.is_err() {
                        return;
                    }
                }
            }
            Err(status) => withheld(&host, &status, &tell).await,
        }
        if tell.is_closed() {
            return;
        }
        pause.wait().await;
    }
}

/// Follows the selected plugin, and switches when another one is selected.
async fn one_plugin(host: Host, mut about: watch::Receiver<Option<String>>, tell: mpsc::Sender<Told>) {
    let mut pause = Pause::new();
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
                pause = Pause::new();
            }
        }
    }
}

/// Follows one plugin's actions and log lines until the stream ends, and then waits for the backoff.
async fn follow(host: &Host, plugin: &str, tell: &mpsc::Sender<Told>, pause: &mut Pause) {
    let request = GetPluginRequest { name: plugin.to_owned(), for_model: false };
    let about = prompt(host.client().get_plugin(request)).await;
    let capabilities = about.ok().and_then(|about| about.into_inner().capabilities);
    let actions: Vec<Sanitized> =
        capabilities.iter().flat_map(|known| &known.actions).map(|action| inert(&action.name)).collect();
    if tell.send(Told::About(Raw::from(plugin).line(), actions)).await.is_err() {
        return;
    }
    let request = LogsRequest { plugin: plugin.to_owned(), follow: true, tail: TAIL };
    match prompt(host.client().logs(request)).await {
        Ok(lines) => {
            let mut lines = lines.into_inner();
            while let Ok(Some(line)) = lines.message().await {
                *pause = Pause::new();
                if tell.send(Told::Line(Happened::line(&line))).await.is_err() {
                    return;
                }
            }
        }
        Err(status) => withheld(host, &status, tell).await,
    }
    pause.wait().await;
}

/// Reports a refusal by the supervisor. A lost connection is reported by the status poll.
async fn withheld(host: &Host, status: &Status, tell: &mpsc::Sender<Told>) {
    if matches!(status.code(), tonic::Code::PermissionDenied | tonic::Code::ResourceExhausted) {
        // The receiver is dropped only at exit.
        let _ = tell.send(Told::Withheld(host.explain(status))).await;
    }
}
