//! One call with one answer in gRPC's format: a head, a length-prefixed message, and a status at the end.
//!
//! Written by hand, because it is little code on top of h2: tonic's client boxes the message, the answer and
//! the error in each of its layers, and copies what it received once more to join the frames, although there
//! is mostly only one.

use std::pin::pin;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, StatusCode, Version};
use talon_wire::message::PREFIX_BYTES;
use talon_wire::{MessageError, MessageReader};
use tonic::{Code, Status};

use super::link::{Link, LinkError};
use super::shared_stream::SharedStream;
use super::status::{NOT_GRPC, TOO_LARGE};

/// The origin that HTTP/2 requires in every request. Only a header for the plugin: the connector determines
/// the peer.
pub(super) static ORIGIN: LazyLock<Uri> = LazyLock::new(|| Uri::from_static("http://localhost"));

/// A message of this size or more is not copied when it is kept.
const SHARED_FROM_BYTES: usize = 32 << 10;

/// The longest value of the header in each unit: eight digits.
const MAX_TIMEOUT_DIGITS: u64 = 99_999_999;

/// How many headers are added to every request.
const FIXED_HEADERS: usize = 3;

/// The resolution of the timeout in the header: a millisecond, within which a call is mostly sent, and finer
/// values are of no use to a plugin. A smaller step would give nearly every call a new header value.
const TIMEOUT_STEP: Duration = Duration::from_millis(1);

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// The length of a framed message.
pub(super) fn message_bytes(framed: &Bytes) -> usize {
    framed.len().saturating_sub(PREFIX_BYTES)
}

/// The data of a request's headers.
pub(super) struct RequestHead {
    /// See [`uri`].
    pub(super) uri: Uri,
    pub(super) metadata: HeaderMap,
    pub(super) timeout: Option<Duration>,
}

impl RequestHead {
    fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = self.uri.clone();
        let mut headers = HeaderMap::with_capacity(self.metadata.len() + FIXED_HEADERS);
        headers.extend(self.metadata.iter().map(|(name, value)| (name.clone(), value.clone())));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        if let Some(timeout) = self.timeout {
            headers.insert(TIMEOUT, timeout_value(round_up(timeout)));
        }
        *request.headers_mut() = headers;
        request
    }
}

/// The URI of a method. HTTP/2 requires an origin, which is only a header for the plugin: the connector
/// determines the peer.
pub(super) fn uri(path: &PathAndQuery) -> Uri {
    let mut parts = ORIGIN.clone().into_parts();
    parts.path_and_query = Some(path.clone());
    Uri::from_parts(parts).expect("an origin and a path are a whole")
}

/// Rounds up to the next [`TIMEOUT_STEP`], so that one limit is one value: HTTP/2 encodes a value that it has
/// sent before in a byte, and has to search all sent values of that name for a new one. The plugin sees up to
/// a step more than there is; the supervisor's own clock bounds the call.
fn round_up(timeout: Duration) -> Duration {
    let steps = timeout.subsec_nanos().div_ceil(TIMEOUT_STEP.subsec_nanos());
    Duration::from_secs(timeout.as_secs()).checked_add(TIMEOUT_STEP * steps).unwrap_or(timeout)
}

/// Formats a timeout in the smallest unit in which it has no more digits than gRPC allows.
fn timeout_value(timeout: Duration) -> HeaderValue {
    // Longer timeouts, of centuries, are capped below.
    let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S')];
    let fitting = units.iter().find(|(unit, _)| nanos / unit <= MAX_TIMEOUT_DIGITS);
    let text = match fitting {
        Some((unit, letter)) => format!("{}{letter}", nanos / unit),
        // Three years: longer than any real deadline.
        None => format!("{MAX_TIMEOUT_DIGITS}S"),
    };
    HeaderValue::try_from(text).expect("digits and a letter")
}

/// Sends a request and reads the one message of the answer.
pub(super) async fn call(
    link: &Link,
    tap: &SharedStream,
    head: &RequestHead,
    message: Bytes,
    max_answer_bytes: usize,
) -> Result<Bytes, Status> {
    let opened = link.open_stream(|| head.request()).await;
    let (response, mut sending) = opened.map_err(broken)?;
    tap.set_response(response);
    // Data beyond the window waits in h2; it is buffered only once.
    sending.send_data(message, true).map_err(|error| broken(LinkError::Http(error)))?;
    drop(sending);
    link.busy_poll().wait(pin!(answer(tap, max_answer_bytes))).await
}

async fn answer(tap: &SharedStream, limit: usize) -> Result<Bytes, Status> {
    let failed = |error| broken(LinkError::Http(error));
    let head = tap.head().await.map_err(failed)?;
    if let Some(encoding) = head.headers.get(ENCODING).filter(|encoding| *encoding != "identity") {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        return Err(not_grpc(format_args!("the answer is compressed with {encoding}, unasked")));
    }
    // An answer without a message has its status in the headers.
    let whole = is_final_ok(&head.headers)?;
    let no_message = |error| no_message(error, limit);
    let mut message = MessageReader::new(limit);
    while let Some(piece) = tap.data().await {
        message.push(piece.map_err(failed)?).map_err(no_message)?;
    }
    let trailers = tap.trailers().await.map_err(failed)?;
    let whole = match &trailers {
        Some(trailers) => is_final_ok(trailers)? || whole,
        None => whole,
    };
    match message.finish() {
        Err(MessageError::Partial) => Err(no_message(MessageError::Partial)),
        _ if !whole => Err(without_status(head.status)),
        message => message.map(detached).map_err(no_message),
    }
}

/// Whether these headers end a call with success; `false` if they do not end it.
fn is_final_ok(headers: &HeaderMap) -> Result<bool, Status> {
    match headers.get(STATUS) {
        None => Ok(false),
        Some(code) if code == "0" => Ok(true),
        Some(code) => {
            // Only these two headers: tonic's parser of a status trusts the format of the others.
            let mut said = HeaderMap::with_capacity(2);
            said.insert(STATUS, code.clone());
            if let Some(message) = headers.get(MESSAGE) {
                said.insert(MESSAGE, message.clone());
            }
            match Status::from_header_map(&said) {
                Some(status) if status.code() != Code::Ok => Err(status),
                _ => Ok(true),
            }
        }
    }
}

/// The status of an answer without one, by gRPC's own table for HTTP status codes.
fn without_status(http: StatusCode) -> Status {
    let code = match http {
        StatusCode::OK => {
            return Status::unknown(format!("{NOT_GRPC}the answer ends without a status"));
        }
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Unknown,
    };
    Status::new(code, format!("the answer ends without a status, after HTTP status {}", http.as_u16()))
}

fn not_grpc(what: std::fmt::Arguments<'_>) -> Status {
    Status::internal(format!("{NOT_GRPC}{what}"))
}

fn broken(error: LinkError) -> Status {
    match error {
        // tonic maps each of HTTP/2's reasons to a status.
        LinkError::Http(error) => Status::from(error),
        other => Status::from_error(Box::new(other)),
    }
}

/// A small message is copied: it may be kept for long, and must not keep a buffer alive of which it is a
/// small part.
fn detached(message: Bytes) -> Bytes {
    if message.len() < SHARED_FROM_BYTES { Bytes::copy_from_slice(&message) } else { message }
}

fn no_message(error: MessageError, limit: usize) -> Status {
    match error {
        MessageError::TooLong { length } => {
            Status::out_of_range(format!("{TOO_LARGE}: {length} bytes, the limit is {limit}"))
        }
        MessageError::Compressed => not_grpc(format_args!("the message is compressed, unasked")),
        MessageError::UnknownFlag(flag) => not_grpc(format_args!("the message begins with {flag}")),
        MessageError::Continued => not_grpc(format_args!("more than one message came")),
        MessageError::Partial => not_grpc(format_args!("the answer ends within its message")),
        MessageError::Missing => not_grpc(format_args!("there is no message in the answer")),
    }
}

#[cfg(test)]
#[path = "unary_tests.rs"]
mod tests;
