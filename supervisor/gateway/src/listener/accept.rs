//! The accept loop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use talon_listen::LogThrottle;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::connection::serve_connection;
use super::limiter::ConnectionLimiter;
use super::stream::PermittedStream;
use super::tls::Certificates;
use super::traffic::Traffic;
use crate::app::App;
use crate::identity::{ClientAddress, ConnectedFrom};

/// The wait after an accept that failed for lack of descriptors or memory: these are freed as connections end.
const PAUSE: Duration = Duration::from_millis(100);

static REFUSED: LogThrottle = LogThrottle::new();
static FAILED: LogThrottle = LogThrottle::new();

/// What serves connections. Clones share state.
#[derive(Clone)]
pub struct Server {
    pub(super) router: Router,
    pub(super) app: App,
    pub(super) certificates: Arc<Certificates>,
    pub(super) traffic: Arc<Traffic>,
    limiter: Arc<ConnectionLimiter>,
    connections: TaskTracker,
}

impl Server {
    /// Serves this router, which was made of this app.
    #[must_use]
    pub fn new(router: Router, app: App, certificates: Arc<Certificates>) -> Self {
        let traffic = Arc::new(Traffic::default());
        let limiter = ConnectionLimiter::new(Arc::clone(&traffic));
        Self { router, app, certificates, traffic, limiter, connections: TaskTracker::new() }
    }

    /// What is counted.
    #[must_use]
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// Returns when all connections are closed that were accepted before.
    pub async fn wait_closed(&self) {
        self.connections.close();
        self.connections.wait().await;
    }

    /// Serves a connection, if there is room; else it is closed at once.
    fn admit(&self, stream: TcpStream, from: ConnectedFrom) {
        let settings = self.app.settings();
        let ip = from.0.ip().to_canonical();
        let is_proxy = settings.proxies.iter().any(|network| network.contains(&ip));
        let address = (!is_proxy).then(|| ClientAddress::of(ip));
        let limits = settings.limits;
        let permit = self.limiter.acquire(address, limits.connections, limits.connections_per_address);
        let Some(permit) = permit else {
            self.traffic.count_refused();
            if let Some(unsaid) = REFUSED.permit() {
                tracing::warn!(%ip, unsaid, "a connection was closed: there are too many (gateway.limits.connections, connections_per_address)");
            }
            return;
        };
        match PermittedStream::new(stream, permit) {
            Ok(stream) => drop(self.connections.spawn(serve_connection(self.clone(), stream, from))),
            Err(error) => tracing::debug!(%error, "a connection ended before it was served"),
        }
    }
}

/// Accepts connections until the app ends. The listener itself stays open elsewhere: who connects later waits for the next process.
pub async fn serve(listener: TcpListener, server: Server) {
    let ending = server.app.ending();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => server.admit(stream, ConnectedFrom(from)),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    if let Some(unsaid) = FAILED.permit() {
                        tracing::warn!(%error, unsaid, "no connection can be accepted; see the open files limit");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    ending.run_until_cancelled(accepting).await;
}

/// Whether an error of accept(2) concerns the connection alone.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
