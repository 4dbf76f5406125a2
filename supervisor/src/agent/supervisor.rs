//! Supervises `talon-agent` across its restarts.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_plugin::{AttachedSocket, Events, ModelSockets, ServiceHooks};
use talon_plugin_config::PluginName;
use talon_proto::agent::AttachClient;
use talon_proto::state::Open;
use talon_sanitize::Sanitized;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::control::AgentService;
use super::endpoint::AgentEndpoint;
use super::pending_client::PendingClient;
use super::report::AgentReport;
use crate::audit::Audit;
use crate::config::Config;
use crate::service::{
    self, ManagedService, ManagedServiceState, ManagedServiceStatus, ServiceHandle, sanitize_report,
};

/// Supervises `talon-agent`. Clones share state.
#[derive(Clone)]
pub struct AgentSupervisor {
    pub(super) handle: ServiceHandle<AgentService>,
}

impl AgentSupervisor {
    /// A supervisor without a process, for so many clients at once. It gets one when it is registered as a service's link.
    #[must_use]
    pub fn new(open: Open, clients: u32, events: Events) -> Self {
        Self { handle: ServiceHandle::new(AgentService::NAME, AgentService::new(open, clients), events) }
    }

    /// The status of the service.
    #[must_use]
    pub fn status(&self) -> ManagedServiceStatus {
        self.handle.status()
    }

    /// The agent's latest report about itself; `None` until there is one.
    pub(crate) fn report(&self) -> Option<AgentReport> {
        self.handle.service().report()
    }

    /// Sets the configuration that the agent receives: the encoded settings and extensions. A running process receives it at
    /// once; an unchanged one only with `resend`, which makes it forget what it learned of its providers.
    pub fn configure(&self, settings: Vec<u8>, extensions: Vec<u8>, resend: bool) {
        self.handle.service().set_config(settings, extensions, resend);
        self.handle.notify_changed();
    }

    /// Sets where the decisions that operators make through it are recorded.
    pub fn set_audit(&self, audit: Audit) {
        self.handle.service().set_audit(audit);
    }

    /// Sets the directory that is the agent's own, where it may write files.
    pub(crate) fn set_home(&self, home: PathBuf) {
        self.handle.service().set_home(home);
    }

    /// Sets what plugins may ask of models, also those that run.
    pub fn set_model_grants(&self, config: Arc<Config>) {
        self.handle.service().models.set_config(config);
        self.handle.notify_changed();
    }

    /// Records that it cannot run without a change by the operator.
    pub(crate) fn set_failed(&self, why: &str) {
        let problem = sanitize_report(why);
        tracing::error!(%problem, "the agent does not run");
        self.handle.update_status(|status| {
            (status.state, status.problem) = (ManagedServiceState::Failed, Some(problem))
        });
    }

    /// Sets what serves its connections to the plugins.
    pub(crate) fn set_endpoint(&self, way: AgentEndpoint) {
        self.handle.service().host_link.set_endpoint(way);
        self.handle.notify_changed();
    }

    /// Disconnects it from the plugins. Requests in flight may finish within this time.
    pub(crate) async fn close_endpoint(&self, within: Duration) {
        self.handle.service().host_link.close(within).await;
    }

    /// Waits until all is recorded that it changed before it was stopped, some seconds at most.
    pub(crate) async fn wait_received(&self) {
        self.handle.wait_received().await;
    }

    /// Lets it run again after a stop.
    pub(crate) fn reopen(&self) {
        self.handle.reopen();
    }

    /// Cancelled when the current process is to end.
    pub(crate) fn closing_token(&self) -> CancellationToken {
        self.handle.closing_token()
    }

    /// Whether it serves or is about to; false if it cannot be started at all.
    pub(crate) fn can_serve(&self) -> bool {
        self.handle.status().state != ManagedServiceState::Failed
    }

    /// Passes a client's connection to it. The connection is closed if too many wait.
    pub(crate) fn attach(
        &self,
        about: AttachClient,
        connection: OwnedFd,
        taken: Option<oneshot::Sender<()>>,
    ) -> io::Result<()> {
        let full = |_| io::Error::other("too many clients wait for the agent");
        self.handle
            .service()
            .attach(PendingClient { identity: about, connection, accepted: taken })
            .map_err(full)?;
        self.handle.notify_changed();
        Ok(())
    }

    /// A channel for the supervisor's own requests, such as health checks. Requests wait until it runs. Must
    /// be called within a tokio runtime.
    pub(crate) fn channel(&self) -> Channel {
        let keeper = self.clone();
        service::channel(move || {
            let (ours, theirs) = net::UnixStream::pair()?;
            keeper.attach(supervisor_client(), theirs.into(), None)?;
            Ok(ours)
        })
    }
}

/// The supervisor as a client of the agent: it only reads metrics and status.
fn supervisor_client() -> AttachClient {
    let uid = rustix::process::geteuid().as_raw();
    AttachClient {
        uid,
        gid: rustix::process::getegid().as_raw(),
        pid: std::process::id(),
        // Neither a user's name nor a number, so this client sees no user's sessions.
        sender: "uid:talon".to_owned(),
        role: "operate".to_owned(),
        origin: "program".to_owned(),
        delegates: false,
    }
}

impl fmt::Debug for AgentSupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSupervisor").field("held", &self.handle).finish()
    }
}

impl ModelSockets for AgentSupervisor {
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn AttachedSocket> {
        let id = self.handle.service().models.attach(plugin, peer, socket);
        self.handle.notify_changed();
        Box::new(AttachedModelSocket { handle: self.handle.clone(), id })
    }
}

/// Withdraws a socket when it is dropped.
struct AttachedModelSocket {
    handle: ServiceHandle<AgentService>,
    id: u64,
}

impl fmt::Debug for AttachedModelSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttachedModelSocket").field("id", &self.id).finish_non_exhaustive()
    }
}

impl AttachedSocket for AttachedModelSocket {
    fn socket(&self) -> io::Result<OwnedFd> {
        self.handle.service().models.socket(self.id)
    }
}

impl Drop for AttachedModelSocket {
    fn drop(&mut self) {
        self.handle.service().models.detach(self.id);
        self.handle.notify_changed();
    }
}

impl ServiceHooks for AgentSupervisor {
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
