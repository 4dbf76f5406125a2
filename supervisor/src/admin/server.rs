//! The running server: one connection, one request, one answer, each with limits.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use talon_listen::LogThrottle;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent::AgentMetrics;
use super::listener::{AdmissionPolicy, Connection, Listener};
use super::routes::Routes;
use super::sources::Sources;
use super::state_usage::StateUsage;
use crate::config::Config;
use crate::socket::{ACCEPT_PAUSE, BindError};

/// Maximum concurrent connections, over all listeners. A scraper, a health check and a person need three. A
/// further one is closed at once.
const MAX_CONNECTIONS: usize = 32;
/// How long a client may take to send its request, which is one line.
const HEADER_WAIT: Duration = Duration::from_secs(5);
/// How long a connection may last, including the answer. A slow reader is cut off then.
const CONNECTION_WAIT: Duration = Duration::from_secs(20);
/// Maximum size of request line and headers together; hyper's minimum. A longer request is refused with 431.
const MAX_REQUEST_BYTES: usize = 8 << 10;
/// Maximum number of headers. Prometheus sends six.
const MAX_HEADERS: usize = 32;

static REJECTED: LogThrottle = LogThrottle::new();
static AT_CAPACITY: LogThrottle = LogThrottle::new();

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
    let places = connection_slots();
    for listener in listeners {
        let serving = accept(listener, Arc::clone(&admit), Arc::clone(&routes), places.clone());
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

/// A semaphore for the connections.
fn connection_slots() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_CONNECTIONS))
}

/// Accepts connections and answers each, for ever.
async fn accept(listener: Listener, admit: AdmissionPolicy, routes: Arc<Routes>, places: Arc<Semaphore>) {
    loop {
        let connection = match listener.accept(&admit).await {
            Ok(Some(connection)) => connection,
            Ok(None) => {
                if let Some(unsaid) = REJECTED.permit() {
                    tracing::warn!(unsaid, "admin.sock was closed to somebody; see admin.group");
                }
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics; see the open files limit");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            if let Some(unsaid) = AT_CAPACITY.permit() {
                tracing::warn!(
                    unsaid,
                    "a connection for metrics was closed: {MAX_CONNECTIONS} are the most at once"
                );
            }
            continue;
        };
        let routes = Arc::clone(&routes);
        tokio::spawn(async move {
            let _place = place;
            match connection {
                Connection::Unix(stream) => answer(stream, routes, false).await,
                Connection::Tcp(stream) => answer(stream, routes, true).await,
            }
        });
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, routes: Arc<Routes>, over_tcp: bool) {
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let routes = Arc::clone(&routes);
        async move { Ok::<_, Infallible>(routes.answer(&request, over_tcp).await) }
    });
    let serving = http1::Builder::new()
        // An idle connection would take a slot from others.
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .max_buf_size(MAX_REQUEST_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    // Errors are the client's: it has received a status or sees the connection end.
    let _ = tokio::time::timeout(CONNECTION_WAIT, serving).await;
}
