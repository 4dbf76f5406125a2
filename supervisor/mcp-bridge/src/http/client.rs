//! The HTTP client for MCP's streamable HTTP, as the `rmcp` library requires it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
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
use talon_bridge::text::cut;

use super::authorization::{Authorization, AuthorizationError};
use super::challenge::{challenge_parameter, is_plain, union};
use super::connect::Connector;
use super::error::{HttpError, failure, is_forbidden, is_out_of_service};
use super::events::events;
use crate::server::lines::MAX_MESSAGE_BYTES;
use crate::server::request_text::to_json;
use crate::server::scan::Scan;
use crate::server::stdio::message;

/// How much is read of an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// By which servers of the HTTP+SSE transport refuse a `POST` to the address of their events: what the
/// specification lists.
const LEGACY_STATUSES: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
/// How much of it is shown.
const MAX_SHOWN_BYTES: usize = 300;
/// How long an unused connection is kept. Shorter than the proxy keeps a tunnel that carries nothing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

type Failure = StreamableHttpError<HttpError>;

/// Who we are to a server.
#[derive(Clone)]
pub(crate) struct Login {
    /// The tokens of a login, if there was one.
    pub(crate) tokens: Option<Arc<dyn Authorization>>,
    /// The command that logs in.
    pub(crate) command: Arc<str>,
}

/// Sends requests.
#[derive(Clone)]
pub(crate) struct HttpClient {
    login: Login,
    client: Client<Connector, Full<Bytes>>,
    /// The status by which the server refused `initialize` without an error of MCP; 0 while it has not.
    refused_post: Arc<AtomicU16>,
    /// Whether the last request had no answer, or one that says that the server is out of service.
    away: Arc<AtomicBool>,
}

/// The parts that every request has.
pub(super) struct Parts {
    pub(super) uri: Arc<str>,
    pub(super) session: Option<Arc<str>>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
}

impl HttpClient {
    pub(crate) fn new(connector: Connector, login: Login) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector);
        Self { login, client, refused_post: Arc::default(), away: Arc::default() }
    }

    /// The status by which servers of the HTTP+SSE transport refuse a `POST` to their address, if this one
    /// did.
    pub(super) fn refused_post(&self) -> Option<u16> {
        Some(self.refused_post.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// Whether the server is away, as far as the last request says.
    pub(super) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Sends a request. A redirect is an error, and so is a server that wants to know who asks.
    pub(super) async fn send(
        &self,
        method: Method,
        parts: Parts,
        more: &[(HeaderName, &str)],
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, HttpError> {
        let Some(tokens) = &self.login.tokens else {
            return self.send_as(None, method, &parts, more, body.into()).await;
        };
        let body = Bytes::from(body);
        let no_token = |error: AuthorizationError| HttpError::NoToken(error.to_string());
        let header = tokens.header().await.map_err(no_token)?;
        match self.send_as(Some(&header), method.clone(), &parts, more, body.clone()).await {
            // A token may be withdrawn before its time.
            Err(HttpError::LoginNeeded { .. } | HttpError::Unauthorized { status: 401, .. }) => {
                let header = tokens.renewed(&header).await.map_err(no_token)?;
                self.send_as(Some(&header), method, &parts, more, body).await
            }
            sent => sent,
        }
    }

    async fn send_as(
        &self,
        authorization: Option<&HeaderValue>,
        method: Method,
        parts: &Parts,
        more: &[(HeaderName, &str)],
        body: Bytes,
    ) -> Result<Response<Incoming>, HttpError> {
        let mut builder = Request::builder().method(method).uri(&*parts.uri);
        for (name, value) in &parts.headers {
            builder = builder.header(name, value);
        }
        if let Some(authorization) = authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if let Some(session) = &parts.session {
            builder = builder.header(HEADER_SESSION_ID, &**session);
        }
        for (name, value) in more {
            builder = builder.header(name, *value);
        }
        let request = builder.body(Full::new(body)).map_err(|error| failure(&error))?;
        // Until it answers. A proxy that forbids the host is no outage.
        self.away.store(true, Ordering::Relaxed);
        let response = self.client.request(request).await.map_err(|error| {
            self.away.store(!is_forbidden(&error), Ordering::Relaxed);
            failure(&error)
        })?;
        self.away.store(is_out_of_service(response.status()), Ordering::Relaxed);
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
            let location = cut(&String::from_utf8_lossy(location), MAX_SHOWN_BYTES);
            return Err(HttpError::Redirect { status: status.as_u16(), location });
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.unauthorized(&response).await);
        }
        Ok(response)
    }

    /// What a server wants that does not know us, or does not let us in.
    async fn unauthorized(&self, response: &Response<Incoming>) -> HttpError {
        let status = response.status().as_u16();
        let challenges =
            response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenge = challenges.fold(String::new(), |all, one| all + one + ", ");
        let command = self.login.command.to_string();
        if challenge_parameter(&challenge, "error").as_deref() == Some("insufficient_scope") {
            // A person will copy the command: nothing that a shell would read stands in it.
            let wanted = challenge_parameter(&challenge, "scope").filter(|scope| is_plain(scope));
            // A login has the rights that it asks for, and no older ones.
            let granted = match &self.login.tokens {
                Some(tokens) => tokens.scope().await.filter(|scope| is_plain(scope)),
                None => None,
            };
            let scope = wanted.map_or_else(
                || "SCOPE".to_owned(),
                |wanted| cut(&union(granted.as_deref().unwrap_or_default(), &wanted), MAX_SHOWN_BYTES),
            );
            return HttpError::Scope { status, scope, command };
        }
        if challenge_parameter(&challenge, "resource_metadata").is_some() {
            return HttpError::LoginNeeded { status, command };
        }
        HttpError::Unauthorized { status, command }
    }

    /// Converts a response with an error status to an error.
    async fn refused(
        &self,
        response: Response<Incoming>,
        message: &ClientJsonRpcMessage,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let (error, failure) = error_of(response).await;
        if let ClientJsonRpcMessage::Request(request) = message {
            let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
            if matches!(request.request, ClientRequest::InitializeRequest(_))
                && error.is_none()
                && LEGACY_STATUSES.contains(&status)
            {
                self.refused_post.store(status.as_u16(), Ordering::Relaxed);
            }
            let error = match error {
                Some(error) => Some(error),
                // A server of an older revision may refuse the probe with any text: `initialize` is tried
                // then.
                None if is_probe && status.is_client_error() => {
                    Some(ErrorData::invalid_request(failure.to_string(), None))
                }
                None => None,
            };
            if let Some(error) = error {
                let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
        }
        Err(StreamableHttpError::Client(failure))
    }
}

/// Reads a response with an error status: an error of MCP if it holds one, and what the status says.
pub(super) async fn error_of(response: Response<Incoming>) -> (Option<ErrorData>, HttpError) {
    let status = response.status();
    let retry = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry = retry.map(|after| format!(" (try again after {})", cut(after, 40))).unwrap_or_default();
    let bytes = body(response, MAX_ERROR_BYTES).await.unwrap_or_default();
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&bytes) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    };
    let text = cut(&String::from_utf8_lossy(&bytes), MAX_SHOWN_BYTES);
    (error, HttpError::Status { status: status.as_u16(), retry, text })
}

pub(super) fn is(response: &Response<Incoming>, mime: &str) -> bool {
    let found = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    found.len() >= mime.len() && found[..mime.len()].eq_ignore_ascii_case(mime.as_bytes())
}

/// Reads a body up to the limit.
async fn body(response: Response<Incoming>, max_bytes: usize) -> Result<Bytes, HttpError> {
    match Limited::new(response.into_body(), max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(HttpError::TooLarge),
        Err(error) => Err(failure(error.as_ref())),
    }
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
        let response =
            self.send(Method::POST, parts, &more, sent).await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refused(response, &message, in_session).await;
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
        let bytes = body(response, MAX_MESSAGE_BYTES).await.map_err(StreamableHttpError::Client)?;
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
        self.send(Method::DELETE, parts, &[], Vec::new()).await.map(drop).map_err(StreamableHttpError::Client)
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
        let response =
            self.send(Method::GET, parts, &more, Vec::new()).await.map_err(StreamableHttpError::Client)?;
        // Servers without such a stream answer 405, and some 404 or 400.
        if !response.status().is_success() || !is(&response, EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(events(response.into_body().into_data_stream(), max_sse_event_size))
    }
}
