//! Checks of the plugin's health service.

use bytes::Bytes;
use prost::Message;
use talon_plugin::ExecuteError;
use talon_plugin::probe::Call;
use talon_sanitize::{Sanitized, inert};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::bench::{Bench, Finding, Session, phrase};

/// The interval between requests to a plugin that does not serve yet.
const POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// A service name that no plugin has.
const NOBODY: &str = "talon.conformance.Nobody";

/// The largest accepted answer, in bytes; it only holds a number.
const ANSWER_BYTES: usize = 64 << 10;

/// The result of a health check.
enum Health {
    Says(ServingStatus),
    /// There is no health service, or no service with that name.
    None(Code),
    Refused(Sanitized),
    Broken(Sanitized),
}

async fn check(bench: &Bench<'_>, session: &Session, service: &str) -> Health {
    let message: Bytes = HealthCheckRequest { service: service.to_owned() }.encode_to_vec().into();
    let patience = bench.spec.lifecycle.health_check_timeout;
    let call = Call { timeout: Some(patience), patience, max_answer_bytes: ANSWER_BYTES };
    match session.wire.at("/grpc.health.v1.Health/Check", message, call).await {
        Ok(bytes) => match HealthCheckResponse::decode(bytes) {
            Ok(answer) => Health::Says(answer.status()),
            Err(_) => Health::Broken("its answer is not grpc.health.v1's".into()),
        },
        Err(ExecuteError::Status { code: code @ (Code::NotFound | Code::Unimplemented), .. }) => {
            Health::None(code)
        }
        Err(ExecuteError::Status { code, message }) => Health::Refused(phrase(code, &message)),
        Err(error) => Health::Broken(bench.how(session, &error).await),
    }
}

pub(super) async fn serving(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    let finding = says_serving(bench).await?;
    bench.facts.healthy = Some(!matches!(finding, Finding::Fail(_)));
    Ok(finding)
}

async fn says_serving(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    bench.live().await?;
    let Some(session) = bench.session() else { return Ok(Finding::pass()) };
    loop {
        match check(bench, session, talon_proto::HEALTH_SERVICE).await {
            Health::Says(ServingStatus::Serving) => return Ok(Finding::pass()),
            Health::Says(_) if !session.probe.start_left().is_zero() => tokio::time::sleep(POLL).await,
            Health::Says(status) => {
                let after = bench.spec.lifecycle.start_timeout.as_secs_f32();
                return Ok(Finding::Fail(inert!(
                    "it still says {} {} s after its start",
                    status.as_str_name(),
                    after
                )));
            }
            Health::None(Code::Unimplemented) => {
                return Ok(Finding::Warn(
                    "it has no health service, so it is judged by its Capabilities".into(),
                ));
            }
            Health::None(_) => {
                return Ok(Finding::Warn("its health service does not know the service `plugin`".into()));
            }
            Health::Refused(text) => return Ok(Finding::Fail(inert!("it answers {}", text))),
            Health::Broken(how) => return Ok(Finding::Fail(inert!("its health cannot be read: {}", how))),
        }
    }
}

pub(super) async fn unknown_service(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    bench.live().await?;
    let Some(session) = bench.session() else { return Ok(Finding::pass()) };
    if let Health::None(Code::Unimplemented) = check(bench, session, talon_proto::HEALTH_SERVICE).await {
        return Ok(Finding::Skip("it has no health service".into()));
    }
    Ok(match check(bench, session, NOBODY).await {
        Health::Says(ServingStatus::Serving) => {
            Finding::Warn("it says SERVING for a service that does not exist".into())
        }
        Health::Broken(how) => Finding::Fail(inert!("asked for a service that does not exist: {}", how)),
        Health::Says(_) | Health::None(_) | Health::Refused(_) => Finding::pass(),
    })
}

pub(super) async fn after_calls(bench: &mut Bench<'_>) -> Result<Finding, Finding> {
    bench.live().await?;
    if bench.facts.healthy == Some(false) {
        return Ok(Finding::Skip("it was not well before: see health.serving".into()));
    }
    let Some(session) = bench.session() else { return Ok(Finding::pass()) };
    Ok(match check(bench, session, talon_proto::HEALTH_SERVICE).await {
        Health::Says(ServingStatus::Serving) => Finding::pass(),
        Health::Says(status) => {
            Finding::Fail(inert!("after the calls before it says {}", status.as_str_name()))
        }
        Health::None(_) => match bench.still_serves(session).await {
            Ok(()) => Finding::Pass("it has no health service, and still answers Capabilities".into()),
            Err(how) => Finding::Fail(inert!("it no longer answers: {}", how)),
        },
        Health::Refused(text) => Finding::Fail(inert!("after the calls before it answers {}", text)),
        Health::Broken(how) => Finding::Fail(inert!("its health can no longer be read: {}", how)),
    })
}
