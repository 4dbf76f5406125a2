//! Passes on one request of plain `http`, and its response.
//!
//! A request for `https` comes through a tunnel, and may do so for `http`; but HTTP clients send the request
//! itself to their proxy then, with the whole URL. Heads are read and written again by hyper, so that bodies
//! begin and end where both sides believe they do; bodies are passed on as they come. Each connection carries
//! one request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use talon_plugin_config::host_port::HostPort;
use tokio::net::TcpStream;
use tokio_util::io::{InspectReader, InspectWriter};
use tokio_util::task::AbortOnDropHandle;

use crate::deadline::Deadline;
use crate::proxy_state::ProxyState;
use crate::target::{Refusal, parse_target};
use crate::tunnel::IDLE_TIMEOUT;

/// The largest head of a response, in bytes: eight times what a request may have, as cookies and policies make
/// them long. A larger one is answered with 502; what one read brings beyond it may pass.
pub const MAX_RESPONSE_HEAD_BYTES: usize = 64 << 10;

/// The port of an `http` URL without one.
const HTTP_PORT: u16 = 80;

/// What is about one connection and not about the message (RFC 9110, 7.6.1). `Expect` is among them: hyper
/// answers it when the body is asked for.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

/// The host of a request with a whole `http` URL.
pub(super) fn asked_host(request: &Request<Incoming>) -> Result<HostPort, Refusal> {
    let uri = request.uri();
    let Some((scheme, authority)) = uri.scheme().zip(uri.authority()) else {
        return Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "this is a proxy: send CONNECT HOST:PORT, or a request with a whole http:// URL".into(),
        ));
    };
    if *scheme != Scheme::HTTP {
        return Err((
            StatusCode::BAD_REQUEST,
            format!(
                "this proxy passes on plain http alone: for https open a tunnel (CONNECT {}:443)",
                authority.host()
            ),
        ));
    }
    // Whatever is beside the host is refused or a port: an invalid one is not taken for the usual one.
    if authority.as_str() == authority.host() {
        parse_target(&format!("{}:{HTTP_PORT}", authority.host()))
    } else {
        parse_target(authority.as_str())
    }
}

/// Sends a request to its connected target, and returns the response as it begins.
pub(super) async fn forward(
    request: Request<Incoming>,
    place: &HostPort,
    target: TcpStream,
    shared: &Arc<ProxyState>,
    deadline: &Arc<Deadline>,
) -> Result<Response<ForwardedBody>, Refusal> {
    let failed = |error: hyper::Error| {
        let text = format!("{place} does not answer in HTTP: {error} (check what listens there)");
        (StatusCode::BAD_GATEWAY, text)
    };
    deadline.set(IDLE_TIMEOUT);
    let (reading, writing) = ((shared.clone(), deadline.clone()), (shared.clone(), deadline.clone()));
    let target = InspectReader::new(target, move |bytes: &[u8]| {
        reading.1.set(IDLE_TIMEOUT);
        reading.0.counters.received(bytes.len());
    });
    let target = InspectWriter::new(target, move |bytes: &[u8]| {
        writing.1.set(IDLE_TIMEOUT);
        writing.0.counters.sent(bytes.len());
    });
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_RESPONSE_HEAD_BYTES);
    let (mut sender, connection) = http.handshake(TokioIo::new(target)).await.map_err(failed)?;
    // Its errors are those of the response.
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let response = sender.send_request(outgoing(request)?).await.map_err(failed)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let text = format!("{place} switches protocols, which needs a tunnel: send CONNECT {place}");
        return Err((StatusCode::BAD_GATEWAY, text));
    }
    let (mut head, body) = response.into_parts();
    remove_hop_by_hop(&mut head.headers);
    Ok(Response::from_parts(head, ForwardedBody { body, _connection: connection }))
}

/// The request as its target gets it: with a path instead of the URL.
fn outgoing(mut request: Request<Incoming>) -> Result<Request<Incoming>, Refusal> {
    let invalid =
        |_| (StatusCode::BAD_REQUEST, "the URL's host is no header value: correct the URL".to_owned());
    let uri = request.uri();
    let host = HeaderValue::from_str(uri.authority().map_or("", |authority| authority.as_str()));
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    remove_hop_by_hop(request.headers_mut());
    // The URL decides, whatever the client wrote (RFC 9112, 3.2.2).
    request.headers_mut().insert(HOST, host.map_err(invalid)?);
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = Version::HTTP_11;
    Ok(request)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // A length beside another framing must not survive it.
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// A response's body, and the connection that it comes from: dropping it closes that.
pub(super) struct ForwardedBody {
    body: Incoming,
    _connection: AbortOnDropHandle<()>,
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
