//! Health and metrics over HTTP, on `admin.sock` in the runtime directory and on inherited listeners.
//! Everything is read-only, and of a request only its method and path are used (and its Host header on TCP).
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200 as long as the event loop answers |
//! | `/readyz` | 200 when every plugin's first start has ended and calls are accepted; otherwise 503 with the reason |
//! | `/metrics` | metrics, in Prometheus' text format |
//!
//! | module | contents |
//! |---|---|
//! | `listener` | listeners, and which peers may connect |
//! | `server` | one connection, one request, with limits |
//! | `routes` | the answer to each path |
//! | `ready` | the result of `/readyz` |
//! | [`metrics`] | the catalogue, the recorder, and the text format |
//! | `collector` | collects the values at a scrape |
//! | [`usage`], `process_tree` | resource usage of processes |
//! | `state_usage` | the size of the plugins' state |
//! | `agent` | the agent's metrics |

mod agent;
mod build;
mod collector;
mod listener;
pub mod metrics;
mod process_tree;
mod ready;
mod routes;
mod server;
mod state_usage;
pub mod usage;

use std::sync::Arc;

use talon_plugin::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::host::{BindError, SupervisorInfo};
use agent::AgentMetrics;
pub use listener::{AdmissionPolicy, Listener, ListenerError, SOCKET_NAME};
use metrics::Series;
use routes::Routes;
use state_usage::StateUsage;

/// Where the values come from.
#[derive(Clone)]
pub struct Sources {
    /// The plugins.
    pub registry: Registry,
    /// The calls.
    pub dispatcher: Arc<Dispatcher>,
    /// The supervisor itself.
    pub info: Arc<SupervisorInfo>,
    /// The series that crates recorded.
    pub series: Arc<Series>,
}

impl Sources {
    /// The sources of a running supervisor.
    #[must_use]
    pub fn new(
        registry: &Registry,
        door: &Arc<Dispatcher>,
        info: Arc<SupervisorInfo>,
        series: Arc<Series>,
    ) -> Self {
        Self { registry: registry.clone(), dispatcher: Arc::clone(door), info, series }
    }
}

/// The running server; dropping it stops it.
pub struct Admin {
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The listeners of the configuration: `admin.sock`, unless it is disabled. Must be called within a tokio
/// runtime.
///
/// # Errors
/// [`BindError`]; nothing is left behind.
pub fn listeners(config: &Config) -> Result<Vec<Listener>, BindError> {
    let bound = config.admin.enabled.then(|| Listener::bind(&config.runtime_dir, config.admin_gid()));
    Ok(bound.transpose()?.into_iter().collect())
}

/// Starts to serve on all of these listeners. Must be called within a tokio runtime.
#[must_use]
pub fn start(listeners: Vec<Listener>, admit: AdmissionPolicy, sources: Sources) -> Admin {
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    let quotas = StateUsage::new(sources.info.state.clone());
    let numbers = AgentMetrics::new(sources.info.agent.clone());
    let routes = Arc::new(Routes::new(sources, quotas, numbers));
    // One limit for all listeners, so that more listeners do not mean more concurrent work.
    let places = server::connection_slots();
    for listener in listeners {
        let serving = server::accept(listener, Arc::clone(&admit), Arc::clone(&routes), places.clone());
        let stop = stop.clone();
        tasks.spawn(async move {
            // An open connection ends by its own timeout.
            let _ = stop.run_until_cancelled(serving).await;
        });
    }
    Admin { stop, tasks }
}

impl Admin {
    /// Stops accepting connections, and removes `admin.sock`.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
