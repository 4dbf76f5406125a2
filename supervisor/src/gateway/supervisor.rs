//! Supervises `talon-gateway` across its restarts.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use talon_plugin::{Events, ServiceHooks};
use talon_proto::gateway::Pong;
use talon_sanitize::Sanitized;

use super::configuration::read_configuration;
use super::control::GatewayService;
use crate::agent::{AgentEndpoint, AgentSupervisor};
use crate::config::{Config, Role};
use crate::service::{
    ManagedService, ManagedServiceState, ManagedServiceStatus, ServiceHandle, sanitize_report,
};

/// Supervises `talon-gateway`. Clones share state.
#[derive(Clone)]
pub struct GatewaySupervisor {
    pub(super) handle: ServiceHandle<GatewayService>,
}

impl GatewaySupervisor {
    /// A supervisor without a process. It gets one when it is registered as a service's link. None of its requests has more than the
    /// role `ceiling`.
    #[must_use]
    pub fn new(agent: Option<AgentSupervisor>, ceiling: Role, events: Events) -> Self {
        let service = GatewayService::new(agent, ceiling);
        Self { handle: ServiceHandle::new(GatewayService::NAME, service, events) }
    }

    /// The status of the service.
    #[must_use]
    pub fn status(&self) -> ManagedServiceStatus {
        self.handle.status()
    }

    /// What it said when its health was last looked at; `None` until then.
    pub(crate) fn report(&self) -> Option<Pong> {
        self.handle.service().report()
    }

    /// Where it serves, while it does: `http://127.0.0.1:19789`.
    pub(crate) fn url(&self) -> Option<String> {
        let scheme = if self.handle.service().uses_tls() { "https" } else { "http" };
        self.handle.service().address().map(|address| format!("{scheme}://{address}"))
    }

    /// Sets what it is told; a running process receives it at once. Returns the problems, each with what to do: with a certificate that
    /// cannot be read it keeps the one before, and without one before it does not start.
    pub(crate) async fn configure(&self, config: &Arc<Config>) -> Vec<String> {
        match read_configuration(config).await {
            Ok(configuration) => {
                self.handle.service().set_configuration(configuration);
                self.handle.notify_changed();
                Vec::new()
            }
            Err(error) => vec![error.to_string()],
        }
    }

    /// Sets the listening socket: one of the service manager's, or of the supervisor before.
    pub(crate) fn set_listener(&self, listener: OwnedFd) {
        self.handle.service().set_listener(listener);
    }

    /// A duplicate of the listening socket, for the next supervisor; `None` until there is one.
    pub(crate) fn listener(&self) -> io::Result<Option<OwnedFd>> {
        self.handle.service().listener().map(|listener| listener.as_fd().try_clone_to_owned()).transpose()
    }

    /// Records that it cannot run without a change by the operator.
    pub(crate) fn set_failed(&self, why: &str) {
        let problem = sanitize_report(why);
        tracing::error!(%problem, "the gateway does not run");
        self.handle.update_status(|status| {
            (status.state, status.problem) = (ManagedServiceState::Failed, Some(problem));
        });
    }

    /// Sets what serves its connection to the host.
    pub(crate) fn set_endpoint(&self, endpoint: AgentEndpoint) {
        self.handle.service().host_link.set_endpoint(endpoint);
        self.handle.notify_changed();
    }

    /// Disconnects it from the host. Requests in flight may finish within this time.
    pub(crate) async fn close_endpoint(&self, within: Duration) {
        self.handle.service().host_link.close(within).await;
    }

    /// Lets it run again after a stop.
    pub(crate) fn reopen(&self) {
        self.handle.reopen();
    }
}

impl fmt::Debug for GatewaySupervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewaySupervisor").field("held", &self.handle).finish()
    }
}

impl ServiceHooks for GatewaySupervisor {
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
