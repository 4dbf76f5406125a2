//! Subscriptions to single resources of the server, for whoever follows them by the action `_-resources_subscribe`.
//!
//! ```text
//! action ─► leases (who, what, until when) ─► subscriber (what the server was told) ─► resources/subscribe, subscriptions/listen
//!                                                              server ─► server/resource_updates.rs ─► notice
//! ```
//!
//! A lease ends when it is not renewed: a subscriber that was killed says nothing. The end of the server is the end of the
//! bridge, and the subscribers renew what they follow with the next one.

mod leases;
mod server_link;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ServerCapabilities;
use rmcp::service::Peer;
use talon_sdk::Notifier;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until};

use crate::server::resource_updates::ResourceUpdates;
use leases::Leases;
use server_link::ServerLink;

/// How long the server may take to be told what is not followed any more.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The subscriptions at one server. Clones share them.
#[derive(Clone)]
pub(crate) struct Subscriptions(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    updates: ResourceUpdates,
    /// A lease was set, so that another one may be the next to end.
    leased: Notify,
}

struct State {
    leases: Leases,
    link: ServerLink,
}

impl Subscriptions {
    /// For a server that says that it takes subscriptions. From now on the host is notified.
    pub(crate) fn start(
        peer: &Peer<RoleClient>,
        is_process: bool,
        updates: ResourceUpdates,
        host: Notifier,
    ) -> Option<Self> {
        if !is_offered(&peer.peer_info()?.capabilities) {
            return None;
        }
        let link = ServerLink::new(peer.clone(), is_process, updates.clone());
        let state = Mutex::new(State { leases: Leases::default(), link });
        let subscriptions = Self(Arc::new(Shared { state, updates: updates.clone(), leased: Notify::new() }));
        tokio::spawn(updates.report_to(host));
        tokio::spawn(subscriptions.clone().end_leases());
        Some(subscriptions)
    }

    /// From now on `subscriber` follows exactly these, for so long. Returns why some are not followed, by address.
    pub(crate) async fn set(
        &self,
        subscriber: &str,
        uris: &[String],
        lease: Duration,
        until: Instant,
    ) -> BTreeMap<String, String> {
        let mut state = self.0.state.lock().await;
        let too_many = state.leases.set(subscriber, uris, Instant::now() + lease);
        let mut refused: BTreeMap<String, String> =
            too_many.into_iter().map(|(uri, why)| (uri, why.to_string())).collect();
        refused.extend(self.tell_server(&mut state, until).await);
        // What others asked for meanwhile is theirs.
        refused.retain(|uri, _| uris.contains(uri));
        state.leases.drop_resources(subscriber, refused.keys());
        drop(state);
        self.0.leased.notify_one();
        refused
    }

    /// Has the server know what is followed now; returns what it refuses.
    async fn tell_server(&self, state: &mut State, until: Instant) -> BTreeMap<String, String> {
        let wanted = state.leases.wanted();
        let refused = state.link.tell(&wanted, until).await;
        let followed: BTreeSet<String> =
            wanted.into_iter().filter(|uri| !refused.contains_key(uri)).collect();
        self.0.updates.follow(followed);
        refused
    }

    /// Ends leases when their time is over. It ends with the process, as the server does.
    async fn end_leases(self) {
        loop {
            let next = {
                let mut state = self.0.state.lock().await;
                let before = state.leases.wanted();
                state.leases.expire(Instant::now());
                if state.leases.wanted() != before {
                    tracing::info!("resources are not followed any more: their subscribers did not renew it");
                    self.tell_server(&mut state, Instant::now() + END_TIMEOUT).await;
                }
                state.leases.next_end()
            };
            let over = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => {}
                () = self.0.leased.notified() => {}
            }
        }
    }
}

/// Whether a server says that it takes subscriptions.
fn is_offered(capabilities: &ServerCapabilities) -> bool {
    capabilities.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
}
