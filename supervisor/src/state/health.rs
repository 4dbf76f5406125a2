//! Whether the service still answers: one that hangs holds what every plugin keeps.

use std::time::Duration;

use talon_plugin::Service;
use talon_proto::state::DescribeRequest;
use talon_proto::state::operator_client::OperatorClient;
use tokio::time::{sleep, timeout};
use tonic::Code;
use tonic::transport::Endpoint;

use super::keeper::Keeper;
use super::status::KeeperState;

/// How the service is looked after: as plugins are.
#[derive(Debug, Clone, Copy)]
pub struct HealthChecks {
    /// The time between two checks.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// So many missed in a row, and it is killed and started again.
    pub threshold: u32,
}

/// Asks the service again and again how it is, for as long as it runs; kills it when it does not say. A database that does
/// not answer is no such case: it says so.
pub async fn watch(keeper: Keeper, service: Service, checks: HealthChecks) {
    let channel =
        Endpoint::from_static("http://talon-state.invalid").connect_with_connector_lazy(keeper.connector());
    let mut operator = OperatorClient::new(channel);
    let mut missed = 0;
    let closing = keeper.closing();
    while closing.run_until_cancelled(sleep(checks.interval)).await.is_some() {
        if !matches!(keeper.status().state, KeeperState::Serving | KeeperState::Unavailable) {
            missed = 0;
            continue;
        }
        // A refusal is an answer. Where no connection can be had, nobody answers.
        match timeout(checks.timeout, operator.describe(DescribeRequest {})).await {
            Ok(Ok(_)) => missed = 0,
            Ok(Err(status)) if status.code() != Code::Unavailable => missed = 0,
            Ok(Err(_)) | Err(_) => missed += 1,
        }
        if missed >= checks.threshold {
            tracing::error!(missed, "the state service does not answer; it is killed and started again");
            service.replace();
            missed = 0;
        }
    }
}
