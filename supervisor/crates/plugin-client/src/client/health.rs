//! Whether a plugin serves: asks its health service or, if it has none, its Capabilities.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use talon_sanitize::{Sanitized, sanitized};
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::{Client, SMALL_ANSWER_BYTES, status};
use crate::capability;

/// The result of a health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthStatus {
    /// It takes calls.
    Serving,
    /// It says that it does not.
    NotServing,
    /// It did not answer, or with an error.
    Failed(Sanitized),
}

const CHECK: PathAndQuery = PathAndQuery::from_static("/grpc.health.v1.Health/Check");

/// Ways to check, in the order in which they are tried; the first that works is remembered.
const SERVICE: u8 = 0;
const WHOLE_SERVER: u8 = 1;
const BY_CAPABILITIES: u8 = 2;

impl Client {
    /// Checks once; `timeout` bounds all attempts together.
    pub async fn health(&self, timeout: Duration) -> HealthStatus {
        match tokio::time::timeout(timeout, self.probe(timeout)).await {
            Ok(Ok(true)) => HealthStatus::Serving,
            Ok(Ok(false)) => HealthStatus::NotServing,
            Ok(Err(status)) => HealthStatus::Failed(status::describe_status(&status)),
            Err(_) => HealthStatus::Failed(sanitized!("no answer within {} ms", timeout.as_millis())),
        }
    }

    async fn probe(&self, timeout: Duration) -> Result<bool, Status> {
        loop {
            let way = self.inner.health.load(Ordering::Relaxed);
            let answer = match way {
                SERVICE => self.check(talon_proto::HEALTH_SERVICE, timeout).await,
                WHOLE_SERVER => self.check("", timeout).await,
                _ => {
                    let limit = capability::MAX_MESSAGE_BYTES;
                    let way = &self.inner.methods.capabilities;
                    return self.unary(way, &(), limit, Some(timeout)).await.map(|_| true);
                }
            };
            match answer {
                // No such service, or no health service at all: use the next way from now on.
                Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => {
                    let next = if status.code() == Code::NotFound { way + 1 } else { BY_CAPABILITIES };
                    self.inner.health.store(next, Ordering::Relaxed);
                }
                other => return other,
            }
        }
    }

    async fn check(&self, service: &str, timeout: Duration) -> Result<bool, Status> {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = self.unary(&CHECK, &request, SMALL_ANSWER_BYTES, Some(timeout)).await?;
        let answer = HealthCheckResponse::decode(answer).map_err(|e| Status::internal(e.to_string()))?;
        match answer.status() {
            ServingStatus::Serving => Ok(true),
            ServingStatus::ServiceUnknown => Err(Status::not_found("")),
            ServingStatus::NotServing | ServingStatus::Unknown => Ok(false),
        }
    }
}
