//! What the server was told about what is followed, in its own revision's way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt as _;
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, Request, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, ServiceError, Subscription};
use talon_error_chain::error_chain;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::request;
use crate::server::resource_updates::ResourceUpdates;

/// Requests to a server at once, so that many resources do not take one round trip for each.
const MAX_CONCURRENT_REQUESTS: usize = 8;
/// The wait before an ended stream is opened again; doubles up to the maximum.
const LISTEN_BACKOFF: Duration = Duration::from_secs(1);
const LISTEN_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Why a resource is not followed that the server's acknowledgement leaves out.
const NOT_ACKNOWLEDGED: &str = "the MCP server takes no subscription to it";
const NOT_IN_TIME: &str = "the MCP server did not answer in time";

/// The subscriptions at the server.
pub(super) struct ServerLink {
    peer: Peer<RoleClient>,
    updates: ResourceUpdates,
    /// Before 2026-07-28 each resource is a request; from then on all of them are one stream.
    is_legacy: bool,
    /// Whether it may forget them without ending: a remote server that begins another session with us.
    may_forget: bool,
    /// What the server has agreed to.
    told: BTreeSet<String>,
    stream: Option<OpenStream>,
}

/// A stream until it is dropped, which cancels the subscription at the server.
struct OpenStream(JoinHandle<()>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServerLink {
    pub(super) fn new(peer: Peer<RoleClient>, is_process: bool, updates: ResourceUpdates) -> Self {
        let is_legacy = peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
        Self { peer, updates, is_legacy, may_forget: !is_process, told: BTreeSet::new(), stream: None }
    }

    /// Has the server notify of exactly these. Returns why it does not of some. May be dropped and called again.
    pub(super) async fn tell(
        &mut self,
        wanted: &BTreeSet<String>,
        until: Instant,
    ) -> BTreeMap<String, String> {
        if self.is_legacy { self.request(wanted, until).await } else { self.listen(wanted, until).await }
    }

    async fn request(&mut self, wanted: &BTreeSet<String>, until: Instant) -> BTreeMap<String, String> {
        let ended: Vec<String> = self.told.difference(wanted).cloned().collect();
        let ended = ended.into_iter().map(|uri| {
            let request =
                ClientRequest::UnsubscribeRequest(Request::new(UnsubscribeRequestParams::new(uri.clone())));
            let sent = send(&self.peer, request, until);
            async move { (uri, sent.await) }
        });
        let mut ended = futures_util::stream::iter(ended).buffer_unordered(MAX_CONCURRENT_REQUESTS);
        while let Some((uri, sent)) = ended.next().await {
            if let Err(why) = sent {
                // Its notifications are dropped in any case.
                tracing::info!("the MCP server goes on notifying of a resource that nobody follows: {why}");
            }
            self.told.remove(&uri);
        }
        drop(ended);
        // Asking again changes nothing where the server has not forgotten it. Subscribers renew seldom.
        let new: Vec<String> =
            wanted.iter().filter(|uri| self.may_forget || !self.told.contains(*uri)).cloned().collect();
        let new = new.into_iter().map(|uri| {
            let request =
                ClientRequest::SubscribeRequest(Request::new(SubscribeRequestParams::new(uri.clone())));
            let sent = send(&self.peer, request, until);
            async move { (uri, sent.await) }
        });
        let mut refused = BTreeMap::new();
        let mut new = futures_util::stream::iter(new).buffer_unordered(MAX_CONCURRENT_REQUESTS);
        while let Some((uri, sent)) = new.next().await {
            match sent {
                Ok(()) => {
                    self.told.insert(uri);
                }
                Err(why) => {
                    self.told.remove(&uri);
                    refused.insert(uri, why);
                }
            }
        }
        refused
    }

    async fn listen(&mut self, wanted: &BTreeSet<String>, until: Instant) -> BTreeMap<String, String> {
        if *wanted == self.told {
            return BTreeMap::new();
        }
        if wanted.is_empty() {
            (self.stream, self.told) = (None, BTreeSet::new());
            return BTreeMap::new();
        }
        let refuse = |told: &BTreeSet<String>, why: &str| {
            wanted.difference(told).map(|uri| (uri.clone(), why.to_owned())).collect()
        };
        let subscription = match timeout_at(until, self.peer.listen(filter(wanted))).await {
            Ok(Ok(subscription)) => subscription,
            Ok(Err(error)) => return refuse(&self.told, &why(error)),
            Err(_) => return refuse(&self.told, NOT_IN_TIME),
        };
        self.told = accepted(&subscription);
        // The one before is cancelled when this one is open, so that no notification is lost between them.
        let open = keep_open(self.peer.clone(), subscription, self.told.clone(), self.updates.clone());
        self.stream = Some(OpenStream(tokio::spawn(open)));
        refuse(&self.told, NOT_ACKNOWLEDGED)
    }
}

fn filter(uris: &BTreeSet<String>) -> SubscriptionFilter {
    SubscriptionFilter::builder().resource_subscriptions(uris.iter().cloned()).build()
}

fn accepted(subscription: &Subscription) -> BTreeSet<String> {
    subscription.acknowledged().resource_subscriptions.iter().flatten().cloned().collect()
}

/// Keeps a stream open: opens it again whenever it ends. What changed meanwhile is unknown, so all of it may have. Its
/// notifications are taken before they come here (`server/message_filter.rs`).
async fn keep_open(
    peer: Peer<RoleClient>,
    mut subscription: Subscription,
    followed: BTreeSet<String>,
    updates: ResourceUpdates,
) {
    let mut wait = LISTEN_BACKOFF;
    loop {
        let opened = Instant::now();
        while let Ok(Some(_)) = subscription.next().await {}
        if opened.elapsed() > LISTEN_BACKOFF_MAX {
            wait = LISTEN_BACKOFF;
        }
        subscription = loop {
            if peer.is_transport_closed() {
                return;
            }
            sleep(wait).await;
            wait = (2 * wait).min(LISTEN_BACKOFF_MAX);
            match peer.listen(filter(&followed)).await {
                Ok(subscription) => break subscription,
                Err(error) => {
                    tracing::info!(
                        "the MCP server does not notify of resources now: {}",
                        error_chain(&error)
                    );
                }
            }
        };
        updates.take_all();
    }
}

async fn send(peer: &Peer<RoleClient>, request: ClientRequest, until: Instant) -> Result<(), String> {
    match timeout_at(until, request::ask(peer, request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(why(error)),
        Err(_) => Err(NOT_IN_TIME.to_owned()),
    }
}

fn why(error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => request::refusal(&error).message().to_owned(),
        other => format!("the MCP server cannot be asked: {}", error_chain(&other)),
    }
}
