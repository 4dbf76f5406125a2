//! The HTTP client for MCP's streamable HTTP, as the `rmcp` library requires it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use talon_bridge::text::{cut, error_chain};

use super::connect::Connector;
use super::events::events;
use crate::server::lines::MAX_MESSAGE_BYTES;
use crate::server::request_text::to_json;
use crate::server::scan::Scan;
use crate::server::stdio::message;

/// How much is read of an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How much of it is shown.
const MAX_SHOWN_BYTES: usize = 300;
/// How long an unused connection is kept. Shorter than the proxy keeps a tunnel that carries nothing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a request failed, as the caller reads it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("{0}")]
    Request(String),
    #[error(
        "it answers with a redirect (HTTP {status}) to {location:?}, which is not followed: write that url, if you trust it"
    )]
    Redirect { status: u16, location: String },
    #[error(
        "it wants to know who asks (HTTP {0}): put the header that it expects into config.headers, such as Authorization"
    )]
    Unauthorized(u16),
    #[error("it answers with HTTP {status}{retry}: {text:?}")]
    Status { status: u16, retry: String, text: String },
    #[error("its answer is larger than the {MAX_MESSAGE_BYTES} bytes that are read; ask for less at once")]
    TooLarge,
    #[error(
        "it answers with {0:?} instead of JSON or an event stream: is this the address of an MCP server?"
    )]
    ContentType(String),
    #[error("its answer cannot be read as MCP: {0:?}")]
    NotMcp(String),
}

type Failure = StreamableHttpError<HttpError>;

/// Sends requests.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
}

/// The parts that every request of the library has.
struct Parts {
    uri: Arc<str>,
    session: Option<Arc<str>>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl HttpClient {
    pub(crate) fn new(connector: Connector) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector);
        Self { client }
    }

    async fn send(
        &self,
        method: Method,
        parts: Parts,
        more: &[(HeaderName, &str)],
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut builder = Request::builder().method(method).uri(&*parts.uri);
        for (name, value) in parts.headers {
            builder = builder.header(name, value);
        }
        if let Some(session) = &parts.session {
            builder = builder.header(HEADER_SESSION_ID, &**session);
        }
        for (name, value) in more {
            builder = builder.header(name, *value);
        }
        let request = builder.body(Full::from(body)).map_err(|error| into_failure(&error))?;
        let response = self.client.request(request).await.map_err(|error| into_failure(&error))?;
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
            let location = cut(&String::from_utf8_lossy(location), MAX_SHOWN_BYTES);
            return Err(StreamableHttpError::Client(HttpError::Redirect {
                status: status.as_u16(),
                location,
            }));
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(StreamableHttpError::Client(HttpError::Unauthorized(status.as_u16())));
        }
        Ok(response)
    }
}

fn into_failure(error: &(dyn std::error::Error + 'static)) -> Failure {
    StreamableHttpError::Client(HttpError::Request(error_chain(error)))
}

fn is(response: &Response<Incoming>, mime: &str) -> bool {
    let found = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    found.len() >= mime.len() && found[..mime.len()].eq_ignore_ascii_case(mime.as_bytes())
}

/// Reads a body up to the limit.
async fn body(response: Response<Incoming>, max_bytes: usize) -> Result<Bytes, Failure> {
    match Limited::new(response.into_body(), max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(StreamableHttpError::Client(HttpError::TooLarge))
        }
        Err(error) => Err(into_failure(error.as_ref())),
    }
}

/// Converts a response with an error status to an error.
async fn refused(
    response: Response<Incoming>,
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND && in_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let retry = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry = retry.map(|after| format!(" (try again after {})", cut(after, 40))).unwrap_or_default();
    let bytes = body(response, MAX_ERROR_BYTES).await.unwrap_or_default();
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&bytes) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    };
    let text = cut(&String::from_utf8_lossy(&bytes), MAX_SHOWN_BYTES);
    if let ClientJsonRpcMessage::Request(request) = message {
        let probe = matches!(request.request, ClientRequest::DiscoverRequest(_)) && status.is_client_error();
        let error = match error {
            Some(error) => Some(error),
            // A server of an older revision may refuse the probe with any text: `initialize` is tried then.
            None if probe => Some(ErrorData::invalid_request(format!("HTTP {status}: {text}"), None)),
            None => None,
        };
        if let Some(error) = error {
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    Err(StreamableHttpError::Client(HttpError::Status { status: status.as_u16(), retry, text }))
}

/// Reads a response that came as one JSON document.
fn read(bytes: &[u8]) -> Result<ServerJsonRpcMessage, HttpError> {
    let mut scan = Scan::default();
    scan.feed(bytes);
    if scan.is_costly() {
        return Err(HttpError::TooLarge);
    }
    // The transport inspects lists of tools for arguments in headers, so known types are decoded as such.
    serde_json::from_slice(bytes)
        .ok()
        .or_else(|| message(bytes))
        .ok_or_else(|| HttpError::NotMcp(cut(&String::from_utf8_lossy(bytes), MAX_SHOWN_BYTES)))
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limit = MAX_MESSAGE_BYTES;
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let sent = to_json(&message)?.into_bytes();
        let in_session = session_id.is_some();
        let parts = Parts { uri, session: session_id, headers: custom_headers };
        let accept = format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}");
        let more = [(CONTENT_TYPE, JSON_MIME_TYPE), (ACCEPT, accept.as_str())];
        let response = self.send(Method::POST, parts, &more, sent).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return refused(response, &message, in_session).await;
        }
        let session =
            response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if is(&response, EVENT_STREAM_MIME_TYPE) {
            let events = events(response.into_body().into_data_stream(), max_sse_event_size);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let asks = matches!(message, ClientJsonRpcMessage::Request(_));
        if !is(&response, JSON_MIME_TYPE) {
            let found = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
            let found = cut(&String::from_utf8_lossy(found), MAX_SHOWN_BYTES);
            // Some servers acknowledge a message without a response with an empty 200.
            return if asks {
                Err(StreamableHttpError::Client(HttpError::ContentType(found)))
            } else {
                Ok(StreamableHttpPostResponse::Accepted)
            };
        }
        let bytes = body(response, MAX_MESSAGE_BYTES).await?;
        match read(&bytes) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Err(_) if !asks => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(StreamableHttpError::Client(error)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let parts = Parts { uri, session: Some(session_id), headers: custom_headers };
        // Whether the server deletes its session does not matter to us.
        self.send(Method::DELETE, parts, &[], Vec::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let limit = MAX_MESSAGE_BYTES;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let parts = Parts { uri, session: session_id, headers: custom_headers };
        let mut more = vec![(ACCEPT, EVENT_STREAM_MIME_TYPE)];
        let last_event = HeaderName::from_bytes(HEADER_LAST_EVENT_ID.as_bytes());
        if let (Some(id), Ok(name)) = (&last_event_id, last_event) {
            more.push((name, id));
        }
        let response = self.send(Method::GET, parts, &more, Vec::new()).await?;
        // Servers without such a stream answer 405, and some 404 or 400.
        if !response.status().is_success() || !is(&response, EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(events(response.into_body().into_data_stream(), max_sse_event_size))
    }
}
