//! A connected server: its tools, its notifications, and its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use talon_bridge::text::cut;
use talon_error_chain::error_chain;
use talon_sdk::{Notifier, Tool, ToolError};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use crate::connect::Connected;
use crate::context;
use crate::elicitation::ParkedCalls;
use crate::server::child::Child;
use crate::server::message_filter::ListsChanged;
use crate::server_handle::{EXIT_REPORT_TIMEOUT, ServerHandle};
use crate::subscriptions::Subscriptions;
use crate::tools::call::tool;
use crate::tools::list::tools;
use crate::tools::offer::{MAX_TOOLS, offers};
use crate::tools::run::Run;

/// How long listing the tools of a running server may take. A host waits for it.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait before an ended subscription is renewed; doubles up to the maximum.
const LISTEN_BACKOFF: Duration = Duration::from_secs(1);
const LISTEN_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// One server. Clones share it.
#[derive(Clone)]
pub(crate) struct Session {
    handle: ServerHandle,
    /// The calls that wait for an answer of their user.
    parked: ParkedCalls<Run>,
    tools_changed: Arc<Notify>,
    lists_changed: ListsChanged,
    /// If it takes some.
    subscriptions: Option<Subscriptions>,
    name: Arc<str>,
    only: Option<Arc<[String]>>,
    child: Option<Child>,
}

impl Session {
    /// Starts to monitor a server. `on_end` is called once with the reason when it ends unexpectedly.
    pub(crate) fn start(
        connected: Connected,
        server: String,
        only: Option<Vec<String>>,
        notifier: Notifier,
        on_end: impl FnOnce(&str) + Send + 'static,
    ) -> Self {
        let Connected { service, news, roots, questions, sampling, child } = connected;
        let (sender, over) = watch::channel(false);
        let subscriptions =
            Subscriptions::start(service.peer(), child.is_some(), news.resources, notifier.clone());
        let session = Self {
            handle: ServerHandle {
                peer: service.peer().clone(),
                progress: news.progress,
                roots,
                questions,
                sampling,
                is_process: child.is_some(),
                over,
            },
            parked: ParkedCalls::default(),
            tools_changed: news.tools_changed,
            lists_changed: news.lists_changed,
            subscriptions,
            name: server.into(),
            only: only.map(Into::into),
            child,
        };
        session.log_server_info();
        session.lists_changed.attach(notifier.clone());
        tokio::spawn(session.clone().listen());
        tokio::spawn({
            let changed = session.tools_changed.clone();
            async move {
                loop {
                    changed.notified().await;
                    tracing::info!("the MCP server says that its tools changed");
                    notifier.capabilities_changed();
                }
            }
        });
        tokio::spawn({
            let session = session.clone();
            async move {
                let _ = service.waiting().await;
                if session.child.as_ref().is_some_and(|child| child.closing.is_expected()) {
                    return;
                }
                sender.send_replace(true);
                let why = session.end_reason().await;
                session.stop().await;
                on_end(&why);
            }
        });
        session
    }

    fn log_server_info(&self) {
        let Some(info) = self.handle.peer.peer_info() else { return };
        let word = |text: &str| cut(text, 100);
        let (name, version) = match &info.server_info {
            Some(server) => (word(&server.name), word(&server.version)),
            None => (String::new(), String::new()),
        };
        tracing::info!("MCP server {name:?} {version:?} speaks revision {}", info.protocol_version.as_str());
    }

    /// Servers of the current revision notify of changed lists only if a client subscribes.
    async fn listen(self) {
        let Some(info) = self.handle.peer.peer_info() else { return };
        let has = &info.capabilities;
        let mut wanted = SubscriptionFilter::new();
        wanted.tools_list_changed = has.tools.as_ref().and_then(|tools| tools.list_changed);
        wanted.resources_list_changed = has.resources.as_ref().and_then(|resources| resources.list_changed);
        wanted.prompts_list_changed = has.prompts.as_ref().and_then(|prompts| prompts.list_changed);
        let lists = [wanted.tools_list_changed, wanted.resources_list_changed, wanted.prompts_list_changed];
        if info.protocol_version.has_initialize() || !lists.contains(&Some(true)) {
            return;
        }
        let mut wait = LISTEN_BACKOFF;
        while !self.handle.peer.is_transport_closed() {
            match self.handle.peer.listen(wanted.clone()).await {
                Ok(mut subscription) => {
                    tracing::info!("the bridge follows the lists of the MCP server");
                    while let Ok(Some(news)) = subscription.next().await {
                        wait = LISTEN_BACKOFF;
                        if !self.lists_changed.take(&news) {
                            self.tools_changed.notify_one();
                        }
                    }
                }
                Err(error) => tracing::info!("the MCP server takes no subscription: {}", error_chain(&error)),
            }
            tokio::time::sleep(wait).await;
            wait = (2 * wait).min(LISTEN_BACKOFF_MAX);
        }
    }

    async fn end_reason(&self) -> String {
        let server = &self.name;
        match &self.child {
            Some(child) => match child.ended_within(EXIT_REPORT_TIMEOUT).await {
                Some(how) => format!("the MCP server {server} {how}: its log says why"),
                None => format!("the MCP server {server} closed its output: it is ended"),
            },
            None => format!("the connection to the MCP server {server} is over"),
        }
    }

    /// Lists the server's tools anew.
    ///
    /// # Errors
    /// When that fails by `until`, as the operator reads it.
    pub(crate) async fn tools(&self, until: Option<Instant>) -> Result<Vec<Tool>, ToolError> {
        let server = &self.name;
        let until = until.unwrap_or_else(|| Instant::now() + LIST_TIMEOUT);
        let capabilities =
            self.handle.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let context = context::actions(&capabilities, &self.handle, self.subscriptions.as_ref());
        // A server that says it has something else need not know the question. One that says nothing is asked.
        if capabilities.tools.is_none() && !context.is_empty() {
            tracing::info!("the MCP server has no tools");
            return Ok(context);
        }
        let declared = match timeout_at(until, tools(&self.handle.peer)).await {
            Ok(Ok(declared)) => declared,
            Ok(Err(error)) => {
                let why = error_chain(&error);
                return Err(ToolError::new(format!(
                    "the MCP server {server} does not tell its tools: {why}"
                )));
            }
            Err(_) => {
                return Err(ToolError::new(format!(
                    "the MCP server {server} did not tell its tools in time: give it longer with start_timeout"
                )));
            }
        };
        let offers = offers(&declared, self.only.as_deref(), MAX_TOOLS - context.len());
        tracing::info!("the MCP server has {} tools, of which {} are offered", declared.len(), offers.len());
        let tools = offers.into_iter().map(|offer| tool(offer, self.handle.clone(), self.parked.clone()));
        Ok(tools.chain(context).collect())
    }

    /// Ends it.
    pub(crate) async fn stop(&self) {
        if let Some(child) = &self.child {
            child.stop().await;
        }
    }
}
