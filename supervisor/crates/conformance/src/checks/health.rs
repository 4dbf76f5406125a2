//! Checks of the plugin's health service.

use bytes::Bytes;
use prost::Message;
use talon_plugin::probe::CallOptions;
use talon_plugin_client::ExecuteError;
use talon_sanitize::{Sanitized, sanitized};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::harness::{Finding, Harness, Session, describe_status};

/// The interval between requests to a plugin that does not serve yet.
const POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// A service name that no plugin has.
const UNKNOWN_SERVICE: &str = "talon.conformance.Nobody";

/// The largest accepted answer, in bytes; it only holds a number.
const ANSWER_BYTES: usize = 64 << 10;

/// The result of a health check.
enum HealthResult {
    Status(ServingStatus),
    /// There is no health service, or no service with that name.
    NoService(Code),
    Refused(Sanitized),
    Broken(Sanitized),
}

async fn check(harness: &Harness<'_>, session: &Session, service: &str) -> HealthResult {
    let message: Bytes = HealthCheckRequest { service: service.to_owned() }.encode_to_vec().into();
    let patience = harness.spec.lifecycle.health_check_timeout;
    let call =
        CallOptions { timeout: Some(patience), response_timeout: patience, max_answer_bytes: ANSWER_BYTES };
    match session.client.call_path("/grpc.health.v1.Health/Check", message, call).await {
        Ok(bytes) => match HealthCheckResponse::decode(bytes) {
            Ok(answer) => HealthResult::Status(answer.status()),
            Err(_) => HealthResult::Broken("its answer is not grpc.health.v1's".into()),
        },
        Err(ExecuteError::Status { code: code @ (Code::NotFound | Code::Unimplemented), .. }) => {
            HealthResult::NoService(code)
        }
        Err(ExecuteError::Status { code, message }) => HealthResult::Refused(describe_status(code, &message)),
        Err(error) => HealthResult::Broken(harness.describe_failure(session, &error).await),
    }
}

pub(super) async fn serving(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    let finding = says_serving(harness).await?;
    harness.facts.healthy = Some(!matches!(finding, Finding::Fail(_)));
    Ok(finding)
}

async fn says_serving(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    loop {
        match check(harness, session, talon_proto::HEALTH_SERVICE).await {
            HealthResult::Status(ServingStatus::Serving) => return Ok(Finding::pass()),
            HealthResult::Status(_) if !session.probe.remaining_start_time().is_zero() => {
                tokio::time::sleep(POLL).await
            }
            HealthResult::Status(status) => {
                let after = harness.spec.lifecycle.start_timeout.as_secs_f32();
                return Ok(Finding::Fail(sanitized!(
                    "it still says {} {} s after its start",
                    status.as_str_name(),
                    after
                )));
            }
            HealthResult::NoService(Code::Unimplemented) => {
                return Ok(Finding::Warn(
                    "it has no health service, so it is judged by its Capabilities".into(),
                ));
            }
            HealthResult::NoService(_) => {
                return Ok(Finding::Warn("its health service does not know the service `plugin`".into()));
            }
            HealthResult::Refused(text) => return Ok(Finding::Fail(sanitized!("it answers {}", text))),
            HealthResult::Broken(how) => {
                return Ok(Finding::Fail(sanitized!("its health cannot be read: {}", how)));
            }
        }
    }
}

pub(super) async fn unknown_service(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    harness.ensure_session().await?;
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    if let HealthResult::NoService(Code::Unimplemented) =
        check(harness, session, talon_proto::HEALTH_SERVICE).await
    {
        return Ok(Finding::Skip("it has no health service".into()));
    }
    Ok(match check(harness, session, UNKNOWN_SERVICE).await {
        HealthResult::Status(ServingStatus::Serving) => {
            Finding::Warn("it says SERVING for a service that does not exist".into())
        }
        HealthResult::Broken(how) => {
            Finding::Fail(sanitized!("asked for a service that does not exist: {}", how))
        }
        HealthResult::Status(_) | HealthResult::NoService(_) | HealthResult::Refused(_) => Finding::pass(),
    })
}

pub(super) async fn after_calls(harness: &mut Harness<'_>) -> Result<Finding, Finding> {
    harness.ensure_session().await?;
    if harness.facts.healthy == Some(false) {
        return Ok(Finding::Skip("it was not well before: see health.serving".into()));
    }
    let Some(session) = harness.session() else { return Ok(Finding::pass()) };
    Ok(match check(harness, session, talon_proto::HEALTH_SERVICE).await {
        HealthResult::Status(ServingStatus::Serving) => Finding::pass(),
        HealthResult::Status(status) => {
            Finding::Fail(sanitized!("after the calls before it says {}", status.as_str_name()))
        }
        HealthResult::NoService(_) => match harness.still_serves(session).await {
            Ok(()) => Finding::Pass("it has no health service, and still answers Capabilities".into()),
            Err(how) => Finding::Fail(sanitized!("it no longer answers: {}", how)),
        },
        HealthResult::Refused(text) => {
            Finding::Fail(sanitized!("after the calls before it answers {}", text))
        }
        HealthResult::Broken(how) => Finding::Fail(sanitized!("its health can no longer be read: {}", how)),
    })
}
