//! What the supervisor tells, brought to the screen: its status again and again, events as they happen, and the log lines of
//! the plugin that is looked at. Each comes back by itself when the supervisor is restarted.

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

/// News that wait for the screen; past it the supervisor is read more slowly, and its own bounds hold.
const NEWS: usize = 256;
/// Kept log lines of a plugin that come first: a screenful.
const TAIL: u32 = 200;
/// How soon a supervisor that is gone is looked for again, at first and after many times. A restart takes a second or two.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The tasks that ask, and where their news arrive.
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

    /// One more task, which may fail.
    #[cfg(test)]
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// What is wanted from now on.
    pub(crate) fn want(&self, interval: Duration, plugin: Option<String>) {
        self.interval.send_if_modified(|now| std::mem::replace(now, interval) != interval);
        self.wanted.send_if_modified(|now| {
            let changed = *now != plugin;
            *now = plugin;
            changed
        });
    }

    /// The next news.
    ///
    /// # Errors
    /// A task panicked: whoever draws has to end, since nothing would come any more.
    pub(crate) async fn next(&mut self) -> Result<Told, JoinError> {
        loop {
            tokio::select! {
                told = self.news.recv() => {
                    if let Some(told) = told {
                        return Ok(told);
                    }
                }
                // They end by a panic alone.
                Some(ended) = self.tasks.join_next() => ended?,
            }
        }
    }

    /// News that are there already.
    pub(crate) fn more(&mut self) -> Option<Told> {
        self.news.try_recv().ok()
    }
}

/// Growing waits between vain tries.
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

/// Asks for the status until nobody wants it any more.
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

/// Follows the plugin that is looked at, and changes over when that is another one.
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

/// One plugin's actions and lines, until the stream ends; then some time has passed.
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

/// Says why something does not come, if that is the supervisor's decision. That it is gone is said by the status.
async fn withheld(host: &Host, status: &Status, tell: &mpsc::Sender<Told>) {
    if matches!(status.code(), tonic::Code::PermissionDenied | tonic::Code::ResourceExhausted) {
        // Nobody there to hear it is nobody to tell.
        let _ = tell.send(Told::Withheld(host.explain(status))).await;
    }
}
