//! Health and metrics over HTTP, on `admin.sock` in the runtime directory and on listeners that a service manager hands in.
//! Nothing can be changed here, and no request has anything in it that is looked at but its method and path.
//!
//! | path | what |
//! |---|---|
//! | `/healthz` | 200 as long as the event loop answers |
//! | `/readyz` | 200 when no plugin's first start is under way any more and calls are taken; otherwise 503 with the reason |
//! | `/metrics` | the numbers, in Prometheus' text format |
//!
//! | module | what it is |
//! |---|---|
//! | `listener` | where connections come from, and who may make them |
//! | `server` | one connection, one request, bounded |
//! | `routes` | which answer a request gets |
//! | `ready` | the judgement of `/readyz` |
//! | [`metrics`] | the catalogue, what is recorded, and the text |
//! | `gather` | what is read when somebody asks |
//! | [`usage`], `tree` | what processes use |
//! | `quota` | what plugins keep |
//! | `agent` | what the agent counts |

mod agent;
mod build;
mod gather;
mod listener;
pub mod metrics;
mod quota;
mod ready;
mod routes;
mod server;
mod tree;
pub mod usage;

use std::sync::Arc;

use talon_plugin::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::door::Door;
use crate::host::{About, BindError};
use agent::Numbers;
pub use listener::{Admit, Listener, ListenerError, SOCKET_NAME};
use metrics::Series;
use quota::Quotas;
use routes::Routes;

/// What is told about.
#[derive(Clone)]
pub struct Sources {
    /// The plugins.
    pub registry: Registry,
    /// Their calls.
    pub door: Arc<Door>,
    /// The supervisor itself.
    pub about: Arc<About>,
    /// What crates recorded.
    pub series: Arc<Series>,
}

impl Sources {
    /// All that a running supervisor has.
    #[must_use]
    pub fn new(registry: &Registry, door: &Arc<Door>, about: Arc<About>, series: Arc<Series>) -> Self {
        Self { registry: registry.clone(), door: Arc::clone(door), about, series }
    }
}

/// The running server; it ends when this is dropped.
pub struct Admin {
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The listeners of the configuration: `admin.sock`, unless that is switched off. Must be called within a tokio runtime.
///
/// # Errors
/// [`BindError`]; nothing is left behind.
pub fn listeners(config: &Config) -> Result<Vec<Listener>, BindError> {
    let bound = config.admin.enabled.then(|| Listener::bind(&config.runtime_dir, config.admin_gid()));
    Ok(bound.transpose()?.into_iter().collect())
}

/// Begins to serve on all of these listeners. Must be called within a tokio runtime.
#[must_use]
pub fn start(listeners: Vec<Listener>, admit: Admit, sources: Sources) -> Admin {
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    let quotas = Quotas::new(sources.about.keeper.clone());
    let numbers = Numbers::new(sources.about.agent.clone());
    let routes = Arc::new(Routes::new(sources, quotas, numbers));
    // One count for all, so that more listeners do not mean more work at once.
    let places = server::places();
    for listener in listeners {
        let serving = server::accept(listener, Arc::clone(&admit), Arc::clone(&routes), places.clone());
        let stop = stop.clone();
        tasks.spawn(async move {
            // A connection that is under way ends with its own bound.
            let _ = stop.run_until_cancelled(serving).await;
        });
    }
    Admin { stop, tasks }
}

impl Admin {
    /// Accepts no more connections, and removes `admin.sock`.
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
