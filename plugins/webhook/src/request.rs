//! One request on a connection of its own.
//!
//! A pool would save a handshake for each notification, of which there are few, and would meet connections that the server
//! or the proxy closed meanwhile.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use talon_error_chain::error_chain;
use talon_sink::connection::{ConnectError, connect};
use talon_sink::peer_text::one_line;
use talon_sink::trust::{TlsError, Trust};
use tokio_util::task::AbortOnDropHandle;

use crate::target::Target;

/// How much of a response's body is read: a reason. The rest is left.
const MAX_BODY_BYTES: usize = 2 << 10;
/// The largest head of a response, and how many headers it has.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// The response's head, and the beginning of its body.
pub(crate) struct Response {
    pub(crate) head: http::response::Parts,
    pub(crate) body: Vec<u8>,
}

/// Why there is no response. The texts are one bounded line each.
pub(crate) enum RequestError {
    Connect(ConnectError),
    Tls(TlsError),
    Http(hyper::Error),
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Http(error) => write!(f, "the server broke off: {}", one_line(&error_chain(error))),
        }
    }
}

/// Sends a request and reads the response. It has no time limit of its own.
pub(crate) async fn request(
    target: &Target,
    trust: Option<&Trust>,
    request: Request<Full<Bytes>>,
) -> Result<Response, RequestError> {
    let mut stream = connect(&target.endpoint).await.map_err(RequestError::Connect)?;
    if target.tls {
        let trust = trust.ok_or(RequestError::Tls(TlsError::NoRoots))?;
        stream = trust.connect(&target.endpoint.host, stream).await.map_err(RequestError::Tls)?;
    }
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(RequestError::Http)?;
    // Its errors are those of the request, which has them, too.
    let _connection = AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }));
    let response = sender.send_request(request).await.map_err(RequestError::Http)?;
    let (head, mut incoming) = response.into_parts();
    let mut body = Vec::new();
    while body.len() < MAX_BODY_BYTES {
        // The status is what counts: a body that breaks off is a shorter reason.
        let Some(Ok(frame)) = incoming.frame().await else { break };
        if let Ok(data) = frame.into_data() {
            body.extend_from_slice(&data[..data.len().min(MAX_BODY_BYTES - body.len())]);
        }
    }
    Ok(Response { head, body })
}
