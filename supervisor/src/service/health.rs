//! Whether a service still answers: one that hangs is missed by everybody who needs it.

use std::future::Future;
use std::time::Duration;

use talon_plugin::Service;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use super::held::Held;
use super::kind::Kind;
use super::status::KeeperState;

/// How a service is looked after: as plugins are.
#[derive(Debug, Clone, Copy)]
pub struct HealthChecks {
    /// The time between two checks.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// So many missed in a row, and it is killed and started again.
    pub threshold: u32,
}

/// Asks the service again and again how it is, by `ask`, for as long as it runs; kills it when it does not say. A refusal is an
/// answer, and a database that does not answer is one, too.
pub(crate) async fn watch<K, A>(
    held: Held<K>,
    service: Service,
    checks: HealthChecks,
    mut ask: impl FnMut() -> A + Send,
) where
    K: Kind,
    A: Future<Output = Result<(), Status>> + Send,
{
    let mut missed = 0;
    let closing = held.closing();
    while closing.run_until_cancelled(sleep(checks.interval)).await.is_some() {
        if !matches!(held.status().state, KeeperState::Serving | KeeperState::Unavailable) {
            missed = 0;
            continue;
        }
        // Where no connection can be had, nobody answers.
        match timeout(checks.timeout, ask()).await {
            Ok(Ok(())) => missed = 0,
            Ok(Err(status)) if status.code() != Code::Unavailable => missed = 0,
            Ok(Err(_)) | Err(_) => missed += 1,
        }
        if missed >= checks.threshold {
            tracing::error!(missed, "the {} does not answer; it is killed and started again", K::CALLED);
            service.replace();
            missed = 0;
        }
    }
}
