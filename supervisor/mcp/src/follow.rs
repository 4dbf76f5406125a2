//! Keeps the catalog up to date: follows the supervisor's events, and looks for it again when it is gone.

use std::sync::Arc;
use std::time::Duration;

use talon_proto::host::{Event, WatchEventsRequest};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::{Code, Status, Streaming};

use crate::catalog::Catalog;
use crate::host::Host;
use crate::own::Own;
use crate::patterns::Filter;

/// How long after a change the catalog is read again: changes come in swarms (a plugin that starts passes four states),
/// and a plugin that dies and starts without end costs four lists a second at the most.
const REST: Duration = Duration::from_millis(250);
/// How often the catalog is read where the supervisor does not let this user follow events. A list takes a millisecond.
const POLL: Duration = Duration::from_secs(5);
/// How long is waited before the supervisor is looked for again: at first hardly, in the end as seldom as a person looks.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a request of ours may take: the supervisor answers these from memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// The events after which something else may be offered, or is.
const TELLING: [&str; 4] = ["state_changed", "capabilities_changed", "tools_changed", "supervisor"];

pub(crate) struct Follower {
    host: Host,
    filter: Filter,
    own: Own,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl Follower {
    pub(crate) fn new(host: Host, filter: Filter, own: Own) -> Self {
        Self { host, filter, own, catalog: watch::Sender::default() }
    }

    /// The catalog as it is, and as it will be.
    pub(crate) fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// Follows for ever; ends with the reason if a supervisor of our own cannot be had, or a stranger is in its place.
    pub(crate) async fn run(mut self) -> String {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut met = false;
            let status = match self.session(&mut met).await {
                Ok(never) => match never {},
                Err(status) => status,
            };
            let why = self.host.explain(&status);
            // Nobody gets rid of that one by waiting.
            if self.host.stranger(&status).is_some() {
                return why;
            }
            if met {
                // It worked for a while: what comes now is news.
                pause = FIRST_PAUSE;
                self.own.met();
                tracing::warn!("lost the supervisor: {why}");
            } else {
                tracing::debug!("no supervisor: {why}");
            }
            if self.host.is_nobody(&status)
                && let Err(hopeless) = self.own.see_to_it()
            {
                return hopeless;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Follows one supervisor to its end; `met` once it has told what it offers.
    async fn session(&self, met: &mut bool) -> Result<std::convert::Infallible, Status> {
        let request = WatchEventsRequest::default();
        // Subscribed first, read second: what happens in between is an event that waits in the stream.
        let events = match within(self.host.client().watch_events(request)).await {
            Ok(answer) => Some(answer.into_inner()),
            // Not this user's to follow, or too many do: then it is looked from time to time.
            Err(status) if matches!(status.code(), Code::PermissionDenied | Code::ResourceExhausted) => None,
            Err(status) => return Err(status),
        };
        self.read().await?;
        *met = true;
        match events {
            Some(events) => self.follow(events).await,
            None => loop {
                sleep(POLL).await;
                self.read().await?;
            },
        }
    }

    async fn follow(&self, mut events: Streaming<Event>) -> Result<std::convert::Infallible, Status> {
        let mut read_again: Option<Instant> = None;
        loop {
            let due = async {
                match read_again {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = events.message() => match event? {
                    Some(event) if TELLING.contains(&event.kind.as_str()) => {
                        read_again.get_or_insert_with(|| Instant::now() + REST);
                    }
                    Some(_) => {}
                    None => return Err(Status::unavailable("the supervisor ended")),
                },
                () = due => {
                    read_again = None;
                    self.read().await?;
                }
            }
        }
    }

    async fn read(&self) -> Result<(), Status> {
        let read = within(Catalog::read(&self.host, &self.filter)).await?;
        self.catalog.send_if_modified(|catalog| {
            let changed = **catalog != read;
            if changed {
                tracing::info!(tools = read.tools.len(), settled = read.settled, "read what plugins offer");
                *catalog = Arc::new(read);
            }
            changed
        });
        Ok(())
    }
}

async fn within<T>(asked: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::deadline_exceeded("the supervisor does not answer; see its log")),
    }
}
