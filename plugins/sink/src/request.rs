//! One request on a connection of its own.
//!
//! A pool would save a handshake for each notification, of which there are few, and would meet connections that the server
//! or the proxy closed meanwhile.

use crate::connection::{ConnectError, connect};
use crate::peer_text::one_line;
use crate::trust::{TlsError, Trust};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use talon_error_chain::error_chain;
use tokio_util::task::AbortOnDropHandle;

use crate::target::Target;

/// The largest head of a response, and how many headers it has.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// The response's head, and the beginning of its body.
pub struct Response {
    /// Status and headers.
    pub head: http::response::Parts,
    /// The body, or as much of it as was asked for.
    pub body: Vec<u8>,
    /// Whether that is all of it.
    pub is_whole: bool,
}

/// Why there is no response. The texts are one bounded line each.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is no connection.
    #[error(transparent)]
    Connect(ConnectError),
    /// There is no TLS on it.
    #[error(transparent)]
    Tls(TlsError),
    /// It broke off.
    #[error("the server broke off: {}", one_line(&error_chain(.0)))]
    Http(hyper::Error),
}

/// Sends a request and reads the response, of its body at most so many bytes: the rest is left. It has no time limit of its own.
///
/// # Errors
/// [`RequestError`].
pub async fn request(
    target: &Target,
    trust: Option<&Trust>,
    request: Request<Full<Bytes>>,
    max_body_bytes: usize,
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
    let (mut body, mut is_whole) = (Vec::new(), false);
    while body.len() < max_body_bytes {
        let frame = match incoming.frame().await {
            Some(Ok(frame)) => frame,
            // The status is what counts: a body that breaks off is a shorter reason.
            Some(Err(_)) => break,
            None => {
                is_whole = true;
                break;
            }
        };
        if let Ok(data) = frame.into_data() {
            body.extend_from_slice(&data[..data.len().min(max_body_bytes - body.len())]);
        }
    }
    Ok(Response { head, body, is_whole })
}
