//! Which resources clients follow, and telling them of changes (docs/decisions/0022).
//!
//! ```text
//! client ─ resources/subscribe, subscriptions/listen ─► client.rs ─► registry.rs ─► plugin's action _-resources_subscribe
//!    ▲                                                     ▲            ▲
//!    └── notifications/resources/updated ──────────────────┘            └─ catalog_watcher.rs ◄─ event resource_updated
//! ```
//!
//! All clients of this process are one subscriber of a plugin, with one lease on what any of them follows. It is renewed in time,
//! and whenever the plugin or the supervisor was started again. What may have been missed then counts as changed.

mod client;
mod registry;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use rmcp::ErrorData;
use talon_proto::host::Event;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

pub(crate) use self::client::{ClientSubscriptions, StreamResources};
use self::registry::Registry;
use crate::context::{Requester, ResourcePlace, SubscribeAnswer, subscribe};
use crate::host::Host;

/// The supervisor's event of a changed resource.
pub(crate) const RESOURCE_EVENT: &str = "resource_updated";
/// How long a plugin follows resources for this process without hearing from it: so long it does when the process is killed. Two
/// renewals may fail.
const LEASE: Duration = Duration::from_secs(300);
/// How often it is renewed: one call of each plugin of which somebody follows something.
const RENEWAL: Duration = Duration::from_secs(100);
/// How long a plugin may take to be told. Half of what the official clients give a request is 30 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The wait before a plugin is told again that could not be told.
const RETRY: Duration = Duration::from_secs(5);
/// How long plugins may take at the end of this process. Leases that are not given up by then end by themselves.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Changes that a slow client may lag behind: four seconds of what a supervisor publishes of one process. What it misses counts
/// as a change of all that it follows.
const UPDATES_CAPACITY: usize = 256;
/// The random bytes of this subscriber's name, which nobody guesses.
const NAME_BYTES: usize = 16;

/// The subscriptions of all clients of this process. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Subscriptions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    requester: Requester,
    subscriber: String,
    registry: Mutex<Registry>,
    /// The client's address of what changed.
    updates: broadcast::Sender<Arc<str>>,
    /// Plugins that are to be told what is wanted of them.
    due: Mutex<BTreeSet<String>>,
    wakeup: Notify,
    /// Whether the supervisor lets us follow events.
    has_events: AtomicBool,
}

/// A resource that is followed until this is dropped.
#[derive(Debug)]
pub(crate) struct FollowedResource {
    shared: Arc<Shared>,
    place: ResourcePlace,
}

impl Drop for FollowedResource {
    fn drop(&mut self) {
        if self.shared.registry.lock().remove(&self.place) {
            self.shared.mark_due(&self.place.plugin);
        }
    }
}

impl Subscriptions {
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(host: Host) -> Result<Self, getrandom::Error> {
        let mut name = [0; NAME_BYTES];
        getrandom::fill(&mut name)?;
        let subscriber = hex::encode(name);
        let requester =
            Requester { host, session: format!("mcp-subscriptions-{}", std::process::id()).into() };
        let (updates, _) = broadcast::channel(UPDATES_CAPACITY);
        Ok(Self(Arc::new(Shared {
            requester,
            subscriber,
            registry: Mutex::default(),
            updates,
            due: Mutex::default(),
            wakeup: Notify::new(),
            has_events: AtomicBool::new(false),
        })))
    }

    /// Follows all of these, or none.
    ///
    /// # Errors
    /// A plugin refuses one of them, or is not there.
    async fn follow(&self, places: Vec<ResourcePlace>) -> Result<Vec<FollowedResource>, ErrorData> {
        if !self.0.has_events.load(Ordering::Relaxed) {
            let text = "Changes of resources reach clients whose user may follow the supervisor's events: have this user given \
                        the role operate in host.peers, or read the resource again when you need it.";
            return Err(ErrorData::invalid_request(text, None));
        }
        let mut asking = BTreeSet::new();
        let mut followed = Vec::new();
        for place in places {
            if !self.0.registry.lock().add(&place) {
                asking.insert(place.plugin.clone());
            }
            followed.push(FollowedResource { shared: Arc::clone(&self.0), place });
        }
        for plugin in asking {
            let Some((asked, answer)) = self.0.tell(&plugin).await? else { continue };
            let refused: Vec<&String> = answer.refused.iter().filter_map(|at| asked.get(*at)).collect();
            let is_refused = |place: &ResourcePlace| place.plugin == plugin && refused.contains(&&place.uri);
            if followed.iter().any(|resource| is_refused(&resource.place)) {
                return Err(answer.error);
            }
        }
        Ok(followed)
    }

    /// Takes an event of the supervisor about a changed resource.
    pub(crate) fn take_event(&self, event: &Event) {
        let said = event.fields.get("uri").map(String::as_str).unwrap_or_default();
        let found = self.0.registry.lock().find(&event.plugin, said);
        if let Some(place) = found {
            self.0.publish(&place);
        }
    }

    /// The plugin, or one of its instances, was started again.
    pub(crate) fn plugin_restarted(&self, plugin: &str) {
        if self.0.registry.lock().mark_gap(plugin) {
            self.0.mark_due(plugin);
        }
    }

    /// From now on events of the supervisor come, or not; any before may have been missed.
    pub(crate) fn events_begin(&self, has_events: bool) {
        self.0.has_events.store(has_events, Ordering::Relaxed);
        let plugins = self.0.registry.lock().plugins();
        for plugin in plugins {
            self.plugin_restarted(&plugin);
        }
    }

    /// Tells plugins what is wanted of them, for ever.
    pub(crate) async fn keep(self) {
        let mut renewal = interval(RENEWAL);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed: BTreeSet<String> = BTreeSet::new();
        let mut retry_at: Option<Instant> = None;
        loop {
            let retry = async {
                match retry_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = renewal.tick() => self.0.due.lock().extend(self.0.registry.lock().plugins()),
                () = self.0.wakeup.notified() => {}
                () = retry => self.0.due.lock().append(&mut failed),
            }
            let due = std::mem::take(&mut *self.0.due.lock());
            failed.retain(|plugin| !due.contains(plugin));
            let shared = &self.0;
            let told = due.into_iter().map(|plugin| async move {
                let result = shared.tell(&plugin).await;
                (plugin, result)
            });
            for (plugin, result) in join_all(told).await {
                match result {
                    Ok(Some((_, answer))) if !answer.refused.is_empty() => tracing::warn!(
                        plugin,
                        "{} resources are not followed any more: {}",
                        answer.refused.len(),
                        answer.error.message
                    ),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(plugin, "its resources are not followed now: {}", error.message);
                        failed.insert(plugin);
                    }
                }
            }
            retry_at = (!failed.is_empty()).then(|| Instant::now() + RETRY);
        }
    }

    /// Gives everything up, at the end of the process.
    pub(crate) async fn close(&self) {
        let plugins = self.0.registry.lock().clear();
        let told = join_all(plugins.iter().map(|plugin| self.0.tell(plugin)));
        if timeout(CLOSE_TIMEOUT, told).await.is_err() {
            tracing::debug!("some plugins follow resources until their leases end");
        }
    }
}

impl Shared {
    fn mark_due(&self, plugin: &str) {
        self.due.lock().insert(plugin.to_owned());
        self.wakeup.notify_one();
    }

    fn publish(&self, place: &ResourcePlace) {
        // Without a client there is no receiver.
        let _ = self.updates.send(place.to_client().into());
    }

    /// Tells a plugin what is wanted of it, if it has to know: what it was asked for, and what it says.
    async fn tell(&self, plugin: &str) -> Result<Option<(Vec<String>, SubscribeAnswer)>, ErrorData> {
        let turn = self.registry.lock().turn(plugin);
        let _turn = turn.lock().await;
        let Some(asked) = self.registry.lock().wanted(plugin) else { return Ok(None) };
        let told = subscribe(&self.requester, plugin, &self.subscriber, &asked, LEASE, CALL_TIMEOUT).await;
        let answer = match told {
            Ok(answer) => answer,
            Err(error) => {
                self.registry.lock().failed(plugin);
                return Err(error);
            }
        };
        let missed = self.registry.lock().confirm(plugin, &asked, &answer.refused);
        for place in &missed {
            self.publish(place);
        }
        Ok(Some((asked, answer)))
    }
}
