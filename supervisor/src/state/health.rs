//! Health checks of the state service: if it hangs, no plugin reaches its state.

use talon_plugin::Service;
use talon_proto::state::DescribeRequest;
use talon_proto::state::operator_client::OperatorClient;

use super::supervisor::StateSupervisor;
use crate::service::{self, HealthChecks};

/// Checks the service in intervals while it runs, and kills it if it does not answer. The report that its
/// database does not answer counts as an answer. Whether its process lives is asked without the database,
/// which may be busy for long, as with a restore.
pub async fn watch(keeper: StateSupervisor, service: Service, checks: HealthChecks) {
    let operator = OperatorClient::new(keeper.channel());
    let describe = |unchecked| {
        let operator = operator.clone();
        move || {
            let mut operator = operator.clone();
            async move { operator.describe(DescribeRequest { unchecked }).await.map(drop) }
        }
    };
    service::watch(keeper.handle, service, checks, describe(true), describe(false)).await;
}
