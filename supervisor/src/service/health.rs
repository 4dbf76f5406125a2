//! Health checks of a service: a service that hangs would block all its users.

use std::future::Future;
use std::time::Duration;

use talon_plugin::Service;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use super::handle::ServiceHandle;
use super::managed_service::ManagedService;
use super::status::ManagedServiceState;

/// Health check settings, as for plugins.
#[derive(Debug, Clone, Copy)]
pub struct HealthChecks {
    /// The time between two checks.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// After this many failures in a row, the service is killed and restarted.
    pub threshold: u32,
}

/// Calls `ask` in intervals while the service runs, and kills the service if it does not answer. A refusal
/// counts as an answer, and so does the report that its database does not answer.
pub(crate) async fn watch<K, A>(
    held: ServiceHandle<K>,
    service: Service,
    checks: HealthChecks,
    mut ask: impl FnMut() -> A + Send,
) where
    K: ManagedService,
    A: Future<Output = Result<(), Status>> + Send,
{
    let mut missed = 0;
    let closing = held.closing_token();
    while closing.run_until_cancelled(sleep(checks.interval)).await.is_some() {
        if !matches!(held.status().state, ManagedServiceState::Serving | ManagedServiceState::Unavailable) {
            missed = 0;
            continue;
        }
        // A failed connection counts as no answer.
        match timeout(checks.timeout, ask()).await {
            Ok(Ok(())) => missed = 0,
            Ok(Err(status)) if status.code() != Code::Unavailable => missed = 0,
            Ok(Err(_)) | Err(_) => missed += 1,
        }
        if missed >= checks.threshold {
            tracing::error!(missed, "the {} does not answer; it is killed and started again", K::NAME);
            service.restart();
            missed = 0;
        }
    }
}
