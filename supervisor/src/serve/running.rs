//! The running supervisor, and how it stops.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use talon_jail::Mode;
use talon_plugin::{EventKind, Events, NewEvent, Registry, Service};
use tokio::sync::watch;
use tokio::time::Instant;

use super::admin_listeners::AdminListeners;
use super::agent::AgentRuntime;
use super::failure::ServeFailure;
use super::gateway::GatewayRuntime;
use super::idle::ClientConnections;
use super::peers;
use super::shutdown_cause::ShutdownCause;
use super::signals::Signals;
use crate::audit::Audit;
use crate::config::{Config, PeerPolicy};
use crate::dispatch::Dispatcher;
use crate::events::EventRecorder;
use crate::host::{HostService, LivenessProbe, Server, StateProxy, StreamCloser, serve_agent};
use crate::notify::Manager;
use crate::socket::HostSocket;
use crate::state::StateSupervisor;

/// How long a service manager is asked for more time at the end, at most; then the unit's own
/// `TimeoutStopSec=` counts. Stopping is bounded by a few grace periods anyway.
const STOP_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A running supervisor.
pub(super) struct RunningSupervisor {
    pub(super) events: Events,
    pub(super) registry: Registry,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) state: Option<StateSupervisor>,
    /// The state service, while it runs.
    pub(super) state_service: Option<Service>,
    pub(super) service: HostService,
    /// The rights of peers: replaced with the configuration.
    pub(super) peers: Arc<ArcSwap<PeerPolicy>>,
    pub(super) socket: HostSocket,
    /// The agent with its clients.
    pub(super) agent: AgentRuntime,
    /// The gateway with its listener.
    pub(super) gateway: GatewayRuntime,
    /// `None` while no clients are accepted.
    pub(super) server: Option<Server>,
    /// The listeners for health and metrics.
    pub(super) admin: AdminListeners,
    /// The audit log: one supervisor at a time writes to its directory.
    pub(super) audit: Audit,
    /// The events for an operator: one supervisor at a time writes them.
    pub(super) recorder: EventRecorder,
    /// Ends the streams of events and logs of the server.
    pub(super) closing: StreamCloser,
    /// The probe of the server's accept loop, for the watchdog.
    pub(super) liveness: watch::Sender<Option<LivenessProbe>>,
    /// The connections of clients on all sockets.
    pub(super) clients: ClientConnections,
    /// The mode of our own services' jails.
    pub(super) service_mode: Mode,
    /// When it ends for lack of work, if it does.
    pub(super) idle_exit: Option<Duration>,
}

impl RunningSupervisor {
    /// The active configuration.
    pub(super) fn config(&self) -> Arc<Config> {
        self.dispatcher.config()
    }

    /// How long calls in flight may take to finish when it stops.
    pub(super) fn grace(&self) -> Duration {
        self.config().plugins.tools.lifecycle.grace_period.get()
    }

    /// Accepts clients.
    pub(super) async fn open(&mut self) -> Result<(), ServeFailure> {
        let config = self.config();
        self.closing = StreamCloser::default();
        let recognise = peers::peer_classifier(Arc::clone(&self.peers), self.registry.clone());
        let service = self.service.with_closer(self.closing.clone());
        let largest = self.dispatcher.largest_arguments();
        let server = Server::start(
            &self.socket.listener,
            Arc::clone(&recognise),
            service.clone(),
            StateProxy::new(self.state.clone()).with_audit(self.audit.clone()),
            largest,
            config.host.frames.into(),
            &config.host.limits,
        )?;
        self.admin.open(&config, &self.registry)?;
        let limits = config.host.limits;
        let serve = move |stream, peer| serve_agent(stream, peer, service.clone(), largest, &limits);
        if let Some(state) = &self.state {
            state.set_endpoint(Arc::new(serve.clone()));
        }
        self.agent.open(&config, &self.registry, recognise, serve.clone()).await;
        self.gateway.open(&config, &self.registry, Arc::new(serve)).await;
        self.clients.count_with([server.connections()].into_iter().chain(self.agent.connections()).collect());
        self.liveness.send_replace(Some(server.liveness()));
        self.server = Some(server);
        Ok(())
    }

    /// Resolves when the server ends unexpectedly.
    pub(super) async fn server_ended(&mut self) {
        match &mut self.server {
            Some(server) => {
                server.ended().await;
                self.server = None;
            }
            None => std::future::pending().await,
        }
    }

    /// Carries out the end: stop, handover or failure.
    pub(super) async fn end(
        mut self,
        end: ShutdownCause,
        signals: &mut Signals,
        manager: &Manager,
    ) -> Result<(), ServeFailure> {
        manager.stopping();
        let _more_time = manager.keep_extending(STOP_LIMIT);
        let mut at_once = false;
        let result = match end {
            ShutdownCause::HandedOver => {
                self.release().await;
                return Ok(());
            }
            ShutdownCause::TakeoverFailed(failure) => {
                self.release().await;
                return Err(failure);
            }
            ShutdownCause::Stop(stop) if manager.has_fd_store() => {
                tracing::info!(
                    signal = stop.name(),
                    "handing over: no new calls, calls in flight may finish"
                );
                manager.status("handing over to the next supervisor");
                tokio::select! {
                    stored = self.store(manager) => if stored {
                        let registry = self.registry.clone();
                        self.release().await;
                        // The next supervisor is started into our cgroup.
                        registry.release_cgroup_controllers();
                        return Ok(());
                    },
                    stop = signals.stop() => {
                        tracing::warn!(signal = stop.name(), "stopping at once: nothing is handed over");
                        manager.remove_stored();
                        at_once = true;
                    }
                }
                Ok(())
            }
            ShutdownCause::Stop(stop) => {
                tracing::info!(signal = stop.name(), "stopping: no new calls, calls in flight may finish");
                Ok(())
            }
            ShutdownCause::Idle => {
                tracing::info!("stopping: there was no client and no call for user.idle_exit");
                Ok(())
            }
            ShutdownCause::Requested => {
                tracing::info!("stopping: no new calls, calls in flight may finish");
                Ok(())
            }
            ShutdownCause::Failed(failure) => Err(failure),
        };
        manager.status("stopping");
        self.stop(signals, at_once).await;
        result
    }

    /// Stops everything in order: calls in flight may finish within the grace period, then plugins stop, and
    /// then the state service. A second signal stops it at once.
    async fn stop(mut self, signals: &mut Signals, at_once: bool) {
        let grace = if at_once { Duration::ZERO } else { self.grace() };
        tokio::select! {
            () = self.wind_down(grace) => {}
            stop = signals.stop() => {
                tracing::warn!(signal = stop.name(), "stopping at once: calls in flight are cut off");
                self.registry.shutdown(Duration::ZERO).await;
                self.agent.wait_received().await;
            }
        }
        self.closing.end();
        self.liveness.send_replace(None);
        // The files are removed before the last connections end, so that no client finds a file without
        // getting an answer.
        drop(self.socket.file);
        drop(self.agent);
        // Late, so that monitoring can watch it drain.
        self.admin.close().await;
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
        self.recorder.close().await;
        self.audit.close().await;
        tracing::info!("stopped");
    }

    async fn wind_down(&mut self, grace: Duration) {
        self.events.emit(NewEvent::new(EventKind::Supervisor, "draining"));
        let began = Instant::now();
        let plugins = async {
            let left = self.dispatcher.drain(grace).await;
            if left > 0 {
                tracing::warn!(
                    calls = left,
                    "calls are still in flight after the grace period; they are cut off"
                );
            }
            self.registry.shutdown(grace.saturating_sub(began.elapsed())).await;
        };
        // The agent stops concurrently: its turns are most of what is waited for.
        // The gateway first, since what it has begun is the agent's.
        let services = async {
            self.gateway.close(grace).await;
            self.agent.close(grace).await;
        };
        tokio::join!(plugins, services);
    }
}
