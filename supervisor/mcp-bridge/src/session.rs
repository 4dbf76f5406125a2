//! A connected server: its tools, its notifications, and its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::SubscriptionFilter;
use rmcp::service::Peer;
use talon_sdk::{Notifier, Tool, ToolError};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connect::Connected;
use crate::server::child::{Child, END_GRACE};
use crate::server::message_filter::Updates;
use crate::text::{cut, error_chain};
use crate::tools::call::tool;
use crate::tools::list::tools;
use crate::tools::offer::offers;

/// How long listing the tools of a running server may take. A host waits for it.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait before an ended subscription is renewed; doubles up to the maximum.
const LISTEN_BACKOFF: Duration = Duration::from_secs(1);
const LISTEN_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// How long the exit of a process may take to be noticed after its pipes were closed.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// One server. Clones share it.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) news: Updates,
    server: Arc<str>,
    only: Option<Arc<[String]>>,
    child: Option<Child>,
    /// Whether it ended unexpectedly, so that the bridge ends with it.
    over: watch::Receiver<bool>,
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
        let Connected { service, news, child } = connected;
        let (sender, over) = watch::channel(false);
        let session = Self {
            peer: service.peer().clone(),
            news,
            server: server.into(),
            only: only.map(Into::into),
            child,
            over,
        };
        session.log_server_info();
        tokio::spawn(session.clone().listen());
        tokio::spawn({
            let changed = session.news.tools_changed.clone();
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
        let Some(info) = self.peer.peer_info() else { return };
        let word = |text: &str| cut(text, 100);
        let (name, version) = match &info.server_info {
            Some(server) => (word(&server.name), word(&server.version)),
            None => (String::new(), String::new()),
        };
        tracing::info!("MCP server {name:?} {version:?} speaks revision {}", info.protocol_version.as_str());
    }

    /// Servers of the current revision notify of changed tools only if a client subscribes.
    async fn listen(self) {
        let Some(info) = self.peer.peer_info() else { return };
        let tells = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
        if info.protocol_version.has_initialize() || !tells {
            return;
        }
        let mut wait = LISTEN_BACKOFF;
        while !self.peer.is_transport_closed() {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            match self.peer.listen(filter).await {
                Ok(mut subscription) => {
                    while let Ok(Some(_)) = subscription.next().await {
                        wait = LISTEN_BACKOFF;
                        self.news.tools_changed.notify_one();
                    }
                }
                Err(error) => tracing::info!("the MCP server takes no subscription: {}", error_chain(&error)),
            }
            tokio::time::sleep(wait).await;
            wait = (2 * wait).min(LISTEN_BACKOFF_MAX);
        }
    }

    async fn end_reason(&self) -> String {
        let server = &self.server;
        match &self.child {
            Some(child) => match child.ended_within(EXIT_REPORT_TIMEOUT).await {
                Some(how) => format!("the MCP server {server} {how}: its log says why"),
                None => format!("the MCP server {server} closed its output: it is ended"),
            },
            None => format!("the connection to the MCP server {server} is over"),
        }
    }

    /// For a call that ended without a response: returns only if the server did not end, too. Otherwise the bridge
    /// exits before this returns, so that the supervisor gives the caller a retryable error instead of a refusal.
    pub(crate) async fn server_ended(&self) {
        // The call may notice it before the process monitor does, and before a server that does not read is ended.
        let mut over = self.over.clone();
        let is_over = async { over.wait_for(|over| *over).await.is_ok() };
        if timeout(EXIT_REPORT_TIMEOUT + END_GRACE, is_over).await == Ok(true) {
            std::future::pending::<()>().await;
        }
    }

    /// Lists the server's tools anew.
    ///
    /// # Errors
    /// When that fails by `until`, as the operator reads it.
    pub(crate) async fn tools(&self, until: Option<Instant>) -> Result<Vec<Tool>, ToolError> {
        let server = &self.server;
        let until = until.unwrap_or_else(|| Instant::now() + LIST_TIMEOUT);
        let declared = match timeout_at(until, tools(&self.peer)).await {
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
        let offers = offers(&declared, self.only.as_deref());
        tracing::info!("the MCP server has {} tools, of which {} are offered", declared.len(), offers.len());
        Ok(offers.into_iter().map(|offer| tool(offer, self.clone())).collect())
    }

    /// Whether it is a local process, which accepts every message or is about to end.
    pub(crate) fn is_a_process(&self) -> bool {
        self.child.is_some()
    }

    /// Ends it.
    pub(crate) async fn stop(&self) {
        if let Some(child) = &self.child {
            child.stop().await;
        }
    }
}
