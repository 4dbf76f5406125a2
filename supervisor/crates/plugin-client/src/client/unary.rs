//! One call with one answer in gRPC's format: a head, a length-prefixed message, and a status at the end.
//!
//! Written by hand, because it is little code on top of h2: tonic's client boxes the message, the answer and
//! the error in each of its layers, and copies what it received once more to join the frames, although there
//! is mostly only one.

use std::pin::pin;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, StatusCode, Version};
use talon_wire::message::PREFIX_BYTES;
use tonic::{Code, Status};

use super::link::{Link, LinkError};
use super::shared_stream::SharedStream;
use super::status::{NOT_GRPC, TOO_LARGE};

/// The origin that HTTP/2 requires in every request. Only a header for the plugin: the connector determines the peer.
pub(super) static ORIGIN: LazyLock<Uri> = LazyLock::new(|| Uri::from_static("http://localhost"));

/// A message of this size or more that came in one frame is not copied; a smaller one is. It may be kept for
/// long, and must not keep a buffer alive of which it is a small part.
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
    let mut message = IncomingMessage::new(limit);
    while let Some(piece) = tap.data().await {
        message.push(piece.map_err(failed)?)?;
    }
    let trailers = tap.trailers().await.map_err(failed)?;
    let whole = match &trailers {
        Some(trailers) => is_final_ok(trailers)? || whole,
        None => whole,
    };
    if message.is_partial() {
        return Err(not_grpc(format_args!("the answer ends within its message")));
    }
    if !whole {
        return Err(without_status(head.status));
    }
    message.whole.ok_or_else(|| not_grpc(format_args!("there is no message in the answer")))
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

/// A message that is being received.
struct IncomingMessage {
    limit: usize,
    /// The received part of an incomplete message.
    pieces: BytesMut,
    /// The length from the message's prefix.
    length: Option<usize>,
    whole: Option<Bytes>,
}

impl IncomingMessage {
    fn new(limit: usize) -> Self {
        Self { limit, pieces: BytesMut::new(), length: None, whole: None }
    }

    fn push(&mut self, mut piece: Bytes) -> Result<(), Status> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.whole.is_some() {
            return Err(not_grpc(format_args!("more than one message came")));
        }
        // Usually one frame holds the whole message.
        if self.pieces.is_empty() && self.length.is_none() && piece.len() >= PREFIX_BYTES {
            let length = self.length_in(&mut piece)?;
            if piece.len() >= length {
                return self.complete(piece, length);
            }
            self.length = Some(length);
            self.pieces.reserve(length);
        }
        self.pieces.put(piece);
        if self.length.is_none() {
            if self.pieces.len() < PREFIX_BYTES {
                return Ok(());
            }
            let mut prefix = self.pieces.split_to(PREFIX_BYTES).freeze();
            let length = self.length_in(&mut prefix)?;
            self.length = Some(length);
            self.pieces.reserve(length);
        }
        match self.length {
            Some(length) if self.pieces.len() >= length => {
                let all = std::mem::take(&mut self.pieces).freeze();
                self.complete(all, length)
            }
            _ => Ok(()),
        }
    }

    /// Reads the prefix, before a buffer of the announced length is allocated.
    fn length_in(&self, prefix: &mut Bytes) -> Result<usize, Status> {
        match prefix.get_u8() {
            0 => {}
            1 => return Err(not_grpc(format_args!("the message is compressed, unasked"))),
            flag => return Err(not_grpc(format_args!("the message begins with {flag}"))),
        }
        let length = prefix.get_u32() as usize;
        if length > self.limit {
            let limit = self.limit;
            return Err(Status::out_of_range(format!("{TOO_LARGE}: {length} bytes, the limit is {limit}")));
        }
        Ok(length)
    }

    fn complete(&mut self, mut all: Bytes, length: usize) -> Result<(), Status> {
        let more = all.split_off(length);
        self.length = None;
        self.whole = Some(if length < SHARED_FROM_BYTES { Bytes::copy_from_slice(&all) } else { all });
        self.push(more)
    }

    fn is_partial(&self) -> bool {
        self.length.is_some() || !self.pieces.is_empty()
    }
}

#[cfg(test)]
#[path = "unary_tests.rs"]
mod tests;
