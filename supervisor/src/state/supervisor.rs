//! The desired state of `talon-state`: the sockets of the running plugins, and operators' connections. After
//! a restart the service gets all of it again, so that plugins notice only a delay.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::sync::atomic::Ordering;
use std::time::Duration;

use talon_listen::{FRAME_BYTES, WINDOW_BYTES};
use talon_plugin::{AttachedSocket, Events, ServiceHooks, StateSockets};
use talon_plugin_config::PluginName;
use talon_proto::state::Open;
use talon_sanitize::Sanitized;
use tokio::time::{Instant, timeout_at};
use tonic::transport::{Channel, Endpoint};

use super::control::{QuotaLookup, StateService};
use crate::agent::{AgentEndpoint, ServeConnection};
use crate::config::Quota;
use crate::service::{
    self, ManagedService, ManagedServiceState, ManagedServiceStatus, RetryHint, ServiceHandle,
};

/// How long the first start may take until the database is open. Checking a large one takes up to 5 s, and an
/// earlier supervisor's process may still be ending. What takes longer is stuck; then the start fails with
/// the reason.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// How long transient refusals are retried at the first start: the process of a supervisor that was just
/// killed holds the database until the kernel has ended it.
const TRANSIENT_WAIT: Duration = Duration::from_secs(5);
/// How often the first start is tried if the service ends without giving a reason. A service that fails three
/// times will fail again.
const MAX_SILENT_EXITS: u64 = 3;

/// Why the service did not open its database at the first start. The text ends with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("state cannot be kept: {why}")]
pub struct StateOpenError {
    why: String,
    /// Whether another process held the database, so that a retry may help.
    pub may_pass: bool,
}

/// Supervises `talon-state`. Clones share state.
#[derive(Clone)]
pub struct StateSupervisor {
    pub(super) handle: ServiceHandle<StateService>,
}

impl StateSupervisor {
    /// A supervisor without a process. It gets one when it is registered as a service's link. `backend` is the plugin that keeps
    /// the state, if one does.
    #[must_use]
    pub fn new(open: Open, quotas: QuotaLookup, events: Events, backend: Option<String>) -> Self {
        let service = StateService::new(open, quotas, backend);
        Self { handle: ServiceHandle::new(StateService::NAME, service, events) }
    }

    /// Sets the gid of its processes.
    pub(crate) fn set_gid(&self, gid: u32) {
        self.handle.service().gid.store(gid, Ordering::Relaxed);
    }

    /// Sets what serves its connection to the plugin that keeps the state.
    pub(crate) fn set_endpoint(&self, serve: ServeConnection) {
        let gid = self.handle.service().gid.load(Ordering::Relaxed);
        self.handle.service().host_link.set_endpoint(AgentEndpoint { serve, gid });
        self.handle.notify_changed();
    }

    /// Sets the quotas for plugin processes that start from now on.
    pub fn set_quotas(&self, quotas: QuotaLookup) {
        self.handle.service().set_quotas(quotas);
    }

    /// The status of the service.
    #[must_use]
    pub fn status(&self) -> ManagedServiceStatus {
        self.handle.status()
    }

    /// The quota of a plugin.
    #[must_use]
    pub fn quota(&self, plugin: &PluginName) -> Quota {
        self.handle.service().quota(plugin)
    }

    /// Resolves when the service has opened its database for the first time, even if the database does not
    /// answer yet.
    ///
    /// # Errors
    /// [`StateOpenError`] if it refused for a reason that does not pass within seconds, or reported nothing
    /// for half a minute.
    pub async fn wait_until_open(&self) -> Result<(), StateOpenError> {
        let mut status = self.handle.subscribe();
        let began = Instant::now();
        loop {
            let now = status.borrow_and_update().clone();
            match now.state {
                ManagedServiceState::Serving
                | ManagedServiceState::Full
                | ManagedServiceState::Unavailable
                | ManagedServiceState::Unresponsive => return Ok(()),
                ManagedServiceState::Starting
                | ManagedServiceState::Backoff
                | ManagedServiceState::Failed => {}
            }
            let why = || {
                let said = now.problem.as_ref().map(ToString::to_string);
                let silent =
                    || format!("talon-state has said nothing for {} s: see the log", OPEN_WITHIN.as_secs());
                let may_pass = now.refused == Some(RetryHint::Maybe);
                StateOpenError { why: said.unwrap_or_else(silent), may_pass }
            };
            let patience = match now.refused {
                Some(RetryHint::No) => return Err(why()),
                Some(RetryHint::Maybe) => TRANSIENT_WAIT,
                None if now.restarts >= MAX_SILENT_EXITS => return Err(why()),
                None => OPEN_WITHIN,
            };
            match timeout_at(began + patience, status.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(why()),
            }
        }
    }

    /// Lets the service run again after a stop. Plugins notice nothing: their sockets stayed open, and the
    /// next process gets them.
    pub(crate) fn reopen(&self) {
        self.handle.reopen();
    }

    /// A channel to the service's operator API. Requests wait until the service runs. Must be called within a
    /// tokio runtime.
    pub(crate) fn channel(&self) -> Channel {
        service::channel(self.connect_fn())
    }

    /// The same for clients that read and write a lot, such as exports: with the windows of `host.sock`.
    pub fn bulk_channel(&self) -> Channel {
        let endpoint = Endpoint::from_static("http://talon-state.invalid")
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES);
        service::connector(self.connect_fn()).connect_lazy(&endpoint)
    }

    fn connect_fn(&self) -> impl Fn() -> io::Result<net::UnixStream> + Send + use<> {
        let held = self.handle.clone();
        move || {
            let (ours, theirs) = net::UnixStream::pair()?;
            held.service().push_operator(theirs.into())?;
            held.notify_changed();
            Ok(ours)
        }
    }
}

impl fmt::Debug for StateSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateSupervisor").field("held", &self.handle).finish()
    }
}

impl StateSockets for StateSupervisor {
    fn serves(&self, plugin: &PluginName) -> bool {
        self.handle.service().serves(plugin)
    }

    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn AttachedSocket> {
        let id = self.handle.service().attach(plugin, peer, socket);
        self.handle.notify_changed();
        Box::new(AttachedStateSocket { handle: self.handle.clone(), id })
    }
}

/// Withdraws a socket when it is dropped.
struct AttachedStateSocket {
    handle: ServiceHandle<StateService>,
    id: u64,
}

impl fmt::Debug for AttachedStateSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detach").field("id", &self.id).finish_non_exhaustive()
    }
}

impl AttachedSocket for AttachedStateSocket {
    fn socket(&self) -> io::Result<OwnedFd> {
        self.handle.service().socket(self.id)
    }
}

impl Drop for AttachedStateSocket {
    fn drop(&mut self) {
        self.handle.service().detach(self.id);
        self.handle.notify_changed();
    }
}

impl ServiceHooks for StateSupervisor {
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32) {
        self.handle.on_started(control, pid, uid);
    }

    fn on_stopping(&self) {
        self.handle.on_stopping();
    }

    fn on_ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        self.handle.on_ended(how, again_in);
    }
}
