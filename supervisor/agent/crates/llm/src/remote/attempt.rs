//! One exchange with one key.

use std::time::SystemTime;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::body::{Body, Clock};
use super::classify::failure;
use super::failure::causes;
use super::{Assembly, Endpoint, Failure, Protocol, Quote, Reader, Report, Step};
use crate::key::Lease;
use crate::limits::{MAX_ANSWER_BYTES, MAX_ERROR_BYTES};
use crate::model::{ErrorClass, Request};
use crate::wire::{SurrogatePairs, retry_after};

const JSON: &str = "application/json";

/// Asks, and reads the answer into `assembly`.
pub(super) async fn ask<P: Protocol>(
    endpoint: &Endpoint,
    protocol: &P,
    lease: &Lease,
    request: &Request,
    body: Bytes,
    total: Instant,
    assembly: &mut Assembly<'_>,
) -> Result<(), Failure> {
    let clock = Clock::new(endpoint.timeouts(), total);
    let path = protocol.path(request);
    let response = send(endpoint, protocol, lease, Method::POST, &path, Some(body), &clock).await?;
    let kind = content_type(&response);
    let mut body = Body::new(response, clock);
    let mut reader = protocol.reader(request);
    if kind.starts_with(JSON) && !kind.starts_with(P::STREAM) {
        let whole = body.whole(MAX_ANSWER_BYTES).await?;
        return read_document(&whole, &mut reader, assembly);
    }
    if kind.starts_with("text/html") {
        return Err(failure(None, &Report::read(&body.start(MAX_ERROR_BYTES).await), None));
    }
    let streamed = stream(&mut body, protocol, &mut reader, assembly).await;
    match streamed {
        // Only the usage may be missing, which is no reason to discard an answer.
        Err(broken)
            if assembly.is_finished()
                && matches!(broken.class, ErrorClass::Network | ErrorClass::Timeout) =>
        {
            tracing::debug!(
                provider = endpoint.name(),
                reason = endpoint.redact(&broken.message),
                "the end of a whole answer is missing"
            );
            Ok(())
        }
        other => other,
    }
}

async fn stream<P: Protocol>(
    body: &mut Body,
    protocol: &P,
    reader: &mut P::Reader,
    assembly: &mut Assembly<'_>,
) -> Result<(), Failure> {
    let mut framing = protocol.framing();
    let (mut frames, mut pairs) = (Vec::new(), SurrogatePairs::default());
    loop {
        let bytes = body.next(assembly.has_spoken()).await?;
        match &bytes {
            Some(bytes) => framing.feed(bytes, &mut frames).map_err(|_| Failure::too_long())?,
            None => framing.end(&mut frames),
        }
        for mut frame in frames.drain(..) {
            pairs.join(&mut frame);
            if reader.read(&frame, assembly)? == Step::Last {
                body.rest().await;
                return Ok(());
            }
        }
        if bytes.is_none() {
            return if assembly.is_finished() { Ok(()) } else { Err(Failure::truncated()) };
        }
    }
}

fn read_document<R: Reader>(
    bytes: &[u8],
    reader: &mut R,
    assembly: &mut Assembly<'_>,
) -> Result<(), Failure> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|_| Failure::unreadable(&String::from_utf8_lossy(bytes)))?;
    if let Some(report) = Report::of(&value) {
        return Err(failure(None, &report, None));
    }
    reader.read_whole(&value, assembly)
}

/// Asks for one JSON document.
pub(super) async fn document<P: Protocol>(
    endpoint: &Endpoint,
    protocol: &P,
    lease: &Lease,
    path: &str,
    body: Bytes,
    total: Instant,
) -> Result<Value, Failure> {
    let clock = Clock::new(endpoint.timeouts(), total);
    let response = send(endpoint, protocol, lease, Method::POST, path, Some(body), &clock).await?;
    let is_json = content_type(&response).starts_with(JSON);
    let mut body = Body::new(response, clock);
    if !is_json {
        return Err(failure(None, &Report::read(&body.start(MAX_ERROR_BYTES).await), None));
    }
    let whole = body.whole(MAX_ANSWER_BYTES).await?;
    let value: Value =
        serde_json::from_slice(&whole).map_err(|_| Failure::unreadable(&String::from_utf8_lossy(&whole)))?;
    match Report::of(&value) {
        Some(report) => Err(failure(None, &report, None)),
        None => Ok(value),
    }
}

/// Whether the provider answers, and accepts the key.
pub(super) async fn probe<P: Protocol>(
    endpoint: &Endpoint,
    protocol: &P,
    lease: &Lease,
) -> Result<(), Failure> {
    let total = Instant::now() + endpoint.timeouts().first_token.get();
    let clock = Clock::new(endpoint.timeouts(), total);
    let response = send(endpoint, protocol, lease, Method::GET, protocol.probe(), None, &clock).await?;
    let kind = content_type(&response);
    if kind.starts_with(JSON) {
        return Ok(());
    }
    let start = Body::new(response, clock).start(MAX_ERROR_BYTES).await;
    Err(failure(None, &Report::read(&start), None))
}

/// Sends a request, and returns the response if its status is a success.
async fn send<P: Protocol>(
    endpoint: &Endpoint,
    protocol: &P,
    lease: &Lease,
    method: Method,
    path: &str,
    body: Option<Bytes>,
    clock: &Clock,
) -> Result<Response, Failure> {
    let mut headers = endpoint.headers();
    let key = lease.key.as_ref().and_then(|key| protocol.key_header(key));
    for (name, value) in protocol.headers().into_iter().chain(key) {
        // The operator's headers win, for instance for gateways that need another version.
        headers.entry(name).or_insert(value);
    }
    let mut request = endpoint.client().request(method, endpoint.url(path)).headers(headers);
    if let Some(body) = body {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static(JSON)).body(body);
    }
    let (deadline, late) = clock.deadline(false);
    let response = match timeout_at(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(connection_failure(&error, endpoint)),
        Err(_) => return Err(clock.timeout_failure(late)),
    };
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    if response.status().is_redirection() {
        let to = response.headers().get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let to = String::from_utf8_lossy(to).into_owned();
        let message = format!(
            "it answers with a redirect (HTTP {status}) to {}, which is not followed: write that URL as base_url, if you trust it",
            Quote(&to)
        );
        return Err(Failure { status: Some(status), ..Failure::new(ErrorClass::Request, message) });
    }
    let rest = retry_after(response.headers(), status, SystemTime::now());
    let start = Body::new(response, clock.clone()).start(MAX_ERROR_BYTES).await;
    Err(failure(Some(status), &Report::read(&start), rest))
}

fn connection_failure(error: &reqwest::Error, endpoint: &Endpoint) -> Failure {
    let base = endpoint.base();
    let host = base.host_str().unwrap_or_default();
    let port = base.port_or_known_default().unwrap_or_default();
    if error.is_timeout() {
        let connect = endpoint.timeouts().connect;
        return Failure::new(
            ErrorClass::Timeout,
            format!(
                "{host}:{port} took no connection within {connect} (timeouts.connect): check the network, the proxy and base_url"
            ),
        );
    }
    let causes = causes(error);
    let advice = if causes.contains("ertificate") {
        "if its authority is your own, name its certificate with ca_file"
    } else {
        "check that it runs, base_url, the network and the proxy"
    };
    Failure::new(
        ErrorClass::Network,
        format!("{host}:{port} could not be reached ({}): {advice}", Quote(&causes)),
    )
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_ascii_lowercase()
}
