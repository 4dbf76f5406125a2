//! Health checks of the gateway: if it hangs, all its clients wait.

use talon_plugin::Service;
use tonic::Status;

use super::supervisor::GatewaySupervisor;
use crate::service::{self, HealthChecks};

/// Pings it in intervals over its control socket, and kills it if it does not answer.
pub async fn watch(gateway: GatewaySupervisor, service: Service, checks: HealthChecks) {
    let ping = || {
        let gateway = gateway.clone();
        async move {
            let (id, mut pong) = gateway.handle.service().ping();
            gateway.handle.notify_changed();
            let answered = pong.wait_for(|pong| pong.is_some_and(|pong| pong.id >= id)).await;
            answered.map(drop).map_err(|_| Status::unavailable("it is gone"))
        }
    };
    // It has no database that could fail while it lives.
    service::watch(gateway.handle.clone(), service, checks, ping, ping).await;
}
