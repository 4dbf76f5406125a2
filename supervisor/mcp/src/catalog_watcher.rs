//! Keeps the catalog up to date: follows the supervisor's events, and reconnects after it exits.

use std::sync::Arc;
use std::time::Duration;

use talon_client::RECONNECT_WINDOW;
use talon_proto::host::{Event, WatchEventsRequest};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::{Code, Status, Streaming};

use crate::catalog::Catalog;
use crate::host::Host;
use crate::list_changes::{CHANGES_CAPACITY, LISTS_EVENT, ListChanges};
use crate::patterns::Filter;
use crate::private_supervisor::PrivateSupervisor;
use crate::subscriptions::{RESOURCE_EVENT, Subscriptions};

/// Delay between a change and rereading the catalog. Changes come in bursts (a starting plugin passes four
/// states), and a crash-looping plugin costs at most four lists per second.
const DEBOUNCE: Duration = Duration::from_millis(250);
/// How often to read the catalog if the supervisor does not let this user follow events. A list takes a
/// millisecond.
const POLL: Duration = Duration::from_secs(5);
/// Delays before a reconnect: they double from the first on. For as long as calls wait for the next
/// supervisor they stay short, so that its tools are there when it is; in the end they cost nothing.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const SOON_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// The timeout of our requests: the supervisor answers these from memory.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The events after which a plugin may know nothing of what is followed: `state_changed` when its instance is ready.
const RESTART_EVENTS: [&str; 2] = ["state_changed", "plugin_replaced"];
const READY: &str = "ready";
/// The field of an event that says that events are missing before it.
const MISSED_FIELD: &str = "missed";

/// The events after which the offered tools may have changed.
const CATALOG_EVENTS: [&str; 4] = ["state_changed", "capabilities_changed", "tools_changed", "supervisor"];

pub(crate) struct CatalogWatcher {
    host: Host,
    filter: Filter,
    supervisor: PrivateSupervisor,
    catalog: watch::Sender<Arc<Catalog>>,
    list_changes: broadcast::Sender<ListChanges>,
    subscriptions: Subscriptions,
}

impl CatalogWatcher {
    pub(crate) fn new(
        host: Host,
        filter: Filter,
        supervisor: PrivateSupervisor,
        subscriptions: Subscriptions,
    ) -> Self {
        let (list_changes, _) = broadcast::channel(CHANGES_CAPACITY);
        Self { host, filter, supervisor, catalog: watch::Sender::default(), list_changes, subscriptions }
    }

    /// A receiver of the current catalog and its updates.
    pub(crate) fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// Where changes of lists are sent that are not in the catalog.
    pub(crate) fn list_changes(&self) -> broadcast::Sender<ListChanges> {
        self.list_changes.clone()
    }

    /// Runs forever; returns the reason if a private supervisor cannot be started, or an untrusted process
    /// listens on its socket.
    pub(crate) async fn run(mut self) -> String {
        let mut pause = MIN_BACKOFF;
        let mut alone_since = Instant::now();
        loop {
            let mut met = false;
            let status = match self.session(&mut met).await {
                Ok(never) => match never {},
                Err(status) => status,
            };
            let why = self.host.explain(&status);
            // Waiting does not help against an untrusted process.
            if self.host.unknown_peer(&status).is_some() {
                return why;
            }
            if met {
                // The connection worked for a while: start the backoff anew.
                pause = MIN_BACKOFF;
                alone_since = Instant::now();
                self.supervisor.mark_connected();
                tracing::warn!("lost the supervisor: {why}");
            } else {
                tracing::debug!("no supervisor: {why}");
            }
            if self.host.is_unreachable(&status)
                && let Err(hopeless) = self.supervisor.ensure_running()
            {
                return hopeless.to_string();
            }
            sleep(pause).await;
            let soon = alone_since.elapsed() < RECONNECT_WINDOW;
            pause = (pause * 2).min(if soon { SOON_BACKOFF } else { MAX_BACKOFF });
        }
    }

    /// Follows one supervisor to its end; sets `met` once it has reported its tools.
    async fn session(&self, met: &mut bool) -> Result<std::convert::Infallible, Status> {
        let request = WatchEventsRequest::default();
        // Subscribe before reading: changes in between arrive as events.
        let events = match with_timeout(self.host.client().watch_events(request)).await {
            Ok(answer) => Some(answer.into_inner()),
            // Not permitted, or too many subscribers: poll instead.
            Err(status) if matches!(status.code(), Code::PermissionDenied | Code::ResourceExhausted) => None,
            Err(status) => return Err(status),
        };
        self.subscriptions.events_begin(events.is_some());
        self.refresh().await?;
        *met = true;
        match events {
            Some(events) => self.follow(events).await,
            None => loop {
                sleep(POLL).await;
                self.refresh().await?;
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
                    Some(event) => {
                        if CATALOG_EVENTS.contains(&event.kind.as_str()) {
                            read_again.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                        }
                        self.take_event(&event);
                    }
                    None => return Err(Status::unavailable("the supervisor ended")),
                },
                () = due => {
                    read_again = None;
                    self.refresh().await?;
                }
            }
        }
    }

    /// Passes on what clients are notified of.
    fn take_event(&self, event: &Event) {
        let kind = event.kind.as_str();
        // What is not offered is no news to the client.
        if kind == LISTS_EVENT && self.catalog.borrow().providers.contains_key(&event.plugin) {
            // Without a client there is no receiver.
            let _ = self.list_changes.send(ListChanges::of_event(event));
        } else if kind == RESOURCE_EVENT {
            self.subscriptions.take_event(event);
        } else if RESTART_EVENTS.contains(&kind) && event.fields.get("to").is_none_or(|to| to == READY) {
            self.subscriptions.plugin_restarted(&event.plugin);
        } else if event.fields.contains_key(MISSED_FIELD) {
            self.subscriptions.events_begin(true);
        }
    }

    async fn refresh(&self) -> Result<(), Status> {
        let previous = Arc::clone(&self.catalog.borrow());
        let read = with_timeout(Catalog::read(&self.host, &self.filter, &previous)).await?;
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

async fn with_timeout<T>(asked: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    match timeout(REQUEST_TIMEOUT, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::deadline_exceeded("the supervisor does not answer; see its log")),
    }
}
