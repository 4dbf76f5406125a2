//! What serves connections.

use std::sync::Arc;

use axum::Router;
use tokio_util::task::TaskTracker;

use super::limiter::ConnectionLimiter;
use super::tls::Certificates;
use super::traffic::Traffic;
use crate::app::App;

/// What serves connections. Clones share state.
#[derive(Clone)]
pub struct Server {
    pub(super) router: Router,
    pub(super) app: App,
    pub(super) certificates: Arc<Certificates>,
    pub(super) traffic: Arc<Traffic>,
    pub(super) limiter: Arc<ConnectionLimiter>,
    pub(super) connections: TaskTracker,
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
}
