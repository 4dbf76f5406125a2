//! The MCP server over streamable HTTP, for clients that are not started by an MCP host.
//!
//! ```text
//! connection ── bounds ── token ── Host and Origin (rmcp) ── sessions (rmcp) ── server.rs
//! ```
//!
//! There is no TLS: it listens on loopback, and a proxy with TLS stands in front of it for anything else.

mod token;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

pub(crate) use self::token::{Token, TokenError};
use crate::server::Server;

/// Where requests go, as other servers have it.
const PATH: &str = "/mcp";
/// Concurrent connections. A client has one for each stream that it reads; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// Sessions and stateless requests at once: each holds some tasks and buffers, and clients that connect for each
/// call leave one behind. Further ones get an error until an idle session ends, after five minutes.
const MAX_SESSIONS: usize = 256;
/// How long the head of a request may take. Without it, silent connections would take all places.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request, as on standard input.
const MAX_BODY_BYTES: usize = crate::transport::MAX_LINE_BYTES;
/// How long to wait after accepting a connection failed, as when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The settings of the listener.
#[derive(Debug, Clone)]
pub(crate) struct HttpSettings {
    pub(crate) address: SocketAddr,
    /// Names that clients may use for this server besides those of loopback.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) token: Token,
}

/// Why it does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(
        "{0} is not on loopback, and this server has no TLS: listen on 127.0.0.1 with a proxy in front, or name the hosts \
         that clients ask for with --allowed-host"
    )]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {address}: {source}; choose another port, or end what uses it")]
    Listen { address: SocketAddr, source: io::Error },
}

type Body = BoxBody<Bytes, Infallible>;
type Mcp = StreamableHttpService<Server, LocalSessionManager>;

/// Serves until `closing`.
///
/// # Errors
/// When it cannot listen there.
pub(crate) async fn serve(
    settings: HttpSettings,
    server: Server,
    closing: CancellationToken,
) -> Result<Infallible, HttpError> {
    let address = settings.address;
    if !address.ip().is_loopback() && settings.allowed_hosts.is_empty() {
        return Err(HttpError::NotLoopback(address));
    }
    let listener =
        TcpListener::bind(address).await.map_err(|source| HttpError::Listen { address, source })?;
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!("serving MCP at http://{address}{PATH}");
    let mcp = service(&settings, server, closing);
    let token = Arc::new(settings.token);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (mcp, token) = (mcp.clone(), Arc::clone(&token));
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request| {
                let (mcp, token) = (mcp.clone(), Arc::clone(&token));
                async move { Ok::<_, Infallible>(answer(request, mcp, &token).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended: {error}");
            }
            drop(place);
        });
    }
}

fn service(settings: &HttpSettings, server: Server, closing: CancellationToken) -> Mcp {
    let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let hosts: Vec<String> = hosts.into_iter().chain(settings.allowed_hosts.iter().cloned()).collect();
    let origins = hosts.iter().flat_map(|host| {
        let host =
            if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.clone() };
        [format!("http://{host}:*"), format!("https://{host}:*")]
    });
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_allowed_hosts(hosts)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(closing);
    let sessions = Arc::new(Semaphore::new(MAX_SESSIONS));
    let each = move || {
        let place = Arc::clone(&sessions).try_acquire_owned();
        let place = place
            .map_err(|_| io::Error::other(format!("{MAX_SESSIONS} sessions are open: try again later")))?;
        Ok(server.for_session(place))
    };
    StreamableHttpService::new(each, Arc::new(LocalSessionManager::default()), config)
}

async fn answer(request: Request<Incoming>, mut mcp: Mcp, token: &Token) -> Response<Body> {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "MCP is served at /mcp");
    }
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    if !given.is_some_and(|(_, given)| token.is(given.trim())) {
        let mut refused =
            plain(StatusCode::UNAUTHORIZED, "send the token of this server as Authorization: Bearer");
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refused;
    }
    match mcp.call(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(Full::from(text).boxed());
    *answer.status_mut() = status;
    answer
}
