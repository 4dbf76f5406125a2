//! How the service is asked whether it still answers: one that hangs holds what every plugin keeps.

use talon_plugin::Service;
use talon_proto::state::DescribeRequest;
use talon_proto::state::operator_client::OperatorClient;

use super::keeper::Keeper;
use crate::service::{self, HealthChecks};

/// Asks the service again and again how it is, for as long as it runs; kills it when it does not say. A database that does
/// not answer is no such case: it says so.
pub async fn watch(keeper: Keeper, service: Service, checks: HealthChecks) {
    let operator = OperatorClient::new(keeper.channel());
    let ask = move || {
        let mut operator = operator.clone();
        async move { operator.describe(DescribeRequest {}).await.map(drop) }
    };
    service::watch(keeper.held, service, checks, ask).await;
}
