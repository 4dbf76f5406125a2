//! Serves one connection of the plugin: a CONNECT request, the response, and the tunnel after it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use talon_plugin_config::host_port::HostPort;
use talon_sanitize::{Raw, Sanitized};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use super::connector::{CONNECT_TIMEOUT, ConnectorError, LOOKUP_TIMEOUT};
use super::denial::Denial;
use super::proxy_state::ProxyState;
use super::tunnel;

/// The largest request head, in bytes: the usual limit of servers. A larger one is answered with 431.
pub const MAX_HEAD_BYTES: usize = 8 << 10;

/// The time limit for the request head. The plugin runs on the same machine, so 10 s is generous. After it
/// the connection is closed.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit from the connection to the response: all limits above, and some time for the response
/// itself. A plugin that does not read its response cannot hold a slot for longer.
const ANSWER_TIMEOUT: Duration = HEAD_TIMEOUT
    .saturating_add(LOOKUP_TIMEOUT)
    .saturating_add(CONNECT_TIMEOUT)
    .saturating_add(Duration::from_secs(5));

/// How long a connection that got no tunnel keeps its slot. With 64 slots that allows 640 refusals a second:
/// a plugin that retries in a loop cannot keep the supervisor busy, and an occasional refusal is hardly
/// slower.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// The longest text of a target in messages: a whole name and its port.
const SHOWN_BYTES: usize = 270;

/// An accepted request: both ends of its tunnel.
struct AcceptedTunnel {
    plugin: OnUpgrade,
    target: TcpStream,
}

type Answer = Response<Full<Bytes>>;

/// Serves one connection until it ends.
pub(super) async fn connection(stream: UnixStream, shared: Arc<ProxyState>) {
    let opened = match timeout(ANSWER_TIMEOUT, serve_request(stream, &shared)).await {
        Ok(Some(opened)) => opened,
        // A plugin that sends an invalid, late or no request gets its response from hyper, or none.
        Ok(None) | Err(_) => return sleep(REFUSED_PAUSE).await,
    };
    // Ready at once: the response was written.
    if let Ok(plugin) = opened.plugin.await {
        tunnel::run(TokioIo::new(plugin), opened.target, &shared.counters).await;
    }
}

/// Reads the one request of a connection and answers it.
async fn serve_request(stream: UnixStream, shared: &ProxyState) -> Option<AcceptedTunnel> {
    let slot = Mutex::new(None);
    let service = service_fn(|request| async {
        let (answer, opened) = respond(request, shared).await;
        *slot.lock() = opened;
        Ok::<_, Infallible>(answer)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .auto_date_header(false)
        // A plugin may send everything and shut down its side before the response.
        .half_close(true);
    // An error is the plugin's fault, and hyper has answered it if possible.
    http.serve_connection(TokioIo::new(stream), service).with_upgrades().await.ok()?;
    slot.into_inner()
}

async fn respond(mut request: Request<Incoming>, shared: &ProxyState) -> (Answer, Option<AcceptedTunnel>) {
    match open_target(&mut request, shared).await {
        Ok(target) => {
            shared.counters.tunnel();
            let plugin = hyper::upgrade::on(request);
            (Response::new(Full::default()), Some(AcceptedTunnel { plugin, target }))
        }
        Err((status, text)) => {
            if status != StatusCode::FORBIDDEN {
                shared.counters.failed();
            }
            (refusal(status, text), None)
        }
    }
}

/// Checks a request and connects to its target.
async fn open_target(
    request: &mut Request<Incoming>,
    shared: &ProxyState,
) -> Result<TcpStream, (StatusCode, String)> {
    if request.method() != Method::CONNECT {
        return Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "this proxy opens tunnels only: send CONNECT HOST:PORT, for plain http too".into(),
        ));
    }
    let headers = request.headers();
    if headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING) {
        return Err((
            StatusCode::BAD_REQUEST,
            "a CONNECT request has no body: leave out Content-Length and Transfer-Encoding".into(),
        ));
    }
    // An address with a scheme or a path is not HOST:PORT. Repeating it in the message shows what is wrong.
    let uri = request.uri();
    let asked = match uri.authority() {
        Some(authority) if uri.scheme().is_none() => authority.as_str().to_owned(),
        _ => uri.to_string(),
    };
    let asked = asked.as_str();
    let place = HostPort::parse(asked).map_err(|problem| {
        (
            StatusCode::BAD_REQUEST,
            format!("cannot connect to {:?}: {problem}", Raw::from(asked).line_within(SHOWN_BYTES)),
        )
    })?;
    let denied = |denied: Denial| {
        let text = denied.to_string();
        shared.counters.denied();
        (shared.on_denied)(&denied);
        (StatusCode::FORBIDDEN, text)
    };
    if !shared.connector.allows(&place) {
        return Err(denied(Denial::NotListed { place: sanitized(&place) }));
    }
    shared.connector.connect(&place).await.map_err(|error| match error {
        ConnectorError::NotPublic(ip) => {
            denied(Denial::NotPublic { place: sanitized(&place), address: (ip, place.port).into() })
        }
        ConnectorError::Lookup(error) => {
            (StatusCode::BAD_GATEWAY, format!("cannot resolve {place}: {error} (check the name)"))
        }
        ConnectorError::Connect(error) => {
            (StatusCode::BAD_GATEWAY, format!("cannot connect to {place}: {error} (check that it runs)"))
        }
        ConnectorError::Timeout(what) => {
            (StatusCode::GATEWAY_TIMEOUT, format!("cannot connect to {place}: {what} (try again later)"))
        }
    })
}

/// A requested target as it was parsed.
fn sanitized(place: &HostPort) -> Sanitized {
    Raw::of(place).line()
}

fn refusal(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::from(text + "\n"));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("CONNECT"));
    }
    answer
}
