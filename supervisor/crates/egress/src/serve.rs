//! Serves one connection of HTTP: a CONNECT request, the response, and the tunnel after it; or one request of
//! plain `http`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use talon_plugin_config::host_port::HostPort;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::connector::{CONNECT_TIMEOUT, LOOKUP_TIMEOUT};
use super::deadline::Deadline;
use super::forward::{self, ForwardedBody};
use super::proxy_state::ProxyState;
use super::target::{self, Refusal, TargetError, parse_target};
use super::tunnel;

/// The largest request head, in bytes: the usual limit of servers. A larger one is answered with 431.
pub const MAX_HEAD_BYTES: usize = 8 << 10;

/// The time limit for the request head. The plugin runs on the same machine, so 10 s is generous. After it
/// the connection is closed.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit from the connection to the response, or to a connected target: all limits above, and some
/// time for the response itself. A plugin that does not read its response cannot hold a slot for longer.
const ANSWER_TIMEOUT: Duration = HEAD_TIMEOUT
    .saturating_add(LOOKUP_TIMEOUT)
    .saturating_add(CONNECT_TIMEOUT)
    .saturating_add(Duration::from_secs(5));

/// How long a connection that reached no target keeps its slot. With 64 slots that allows 640 refusals a
/// second: a plugin that retries in a loop cannot keep the supervisor busy, and an occasional refusal is hardly
/// slower.
pub(super) const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What came of the one request of a connection.
enum ServedRequest {
    /// It reached no target.
    Refused,
    /// It was passed on, and its response too.
    Forwarded,
    /// Both ends of its tunnel.
    Tunnel { plugin: OnUpgrade, target: TcpStream },
}

type Answer = Response<Either<Full<Bytes>, ForwardedBody>>;

/// Serves one connection until it ends.
pub(super) async fn connection<S>(stream: S, shared: Arc<ProxyState>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let deadline = Arc::new(Deadline::after(ANSWER_TIMEOUT));
    let served = tokio::select! {
        served = serve_request(stream, &shared, &deadline) => served,
        () = deadline.passed() => ServedRequest::Refused,
    };
    match served {
        // A plugin that sends an invalid, late or no request gets its response from hyper, or none.
        ServedRequest::Refused => sleep(REFUSED_PAUSE).await,
        ServedRequest::Forwarded => {}
        ServedRequest::Tunnel { plugin, target } => {
            // Ready at once: the response was written.
            if let Ok(plugin) = plugin.await {
                tunnel::run(TokioIo::new(plugin), target, &shared.counters).await;
            }
        }
    }
}

/// Reads the one request of a connection and answers it.
async fn serve_request<S>(stream: S, shared: &Arc<ProxyState>, deadline: &Arc<Deadline>) -> ServedRequest
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let slot = Mutex::new(ServedRequest::Refused);
    let service = service_fn(|request| async {
        let (answer, served) = respond(request, shared, deadline).await;
        *slot.lock() = served;
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
    let outcome = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    match slot.into_inner() {
        // Without a written response there is nothing to wait for.
        ServedRequest::Tunnel { .. } if outcome.is_err() => ServedRequest::Refused,
        served => served,
    }
}

async fn respond(
    mut request: Request<Incoming>,
    shared: &Arc<ProxyState>,
    deadline: &Arc<Deadline>,
) -> (Answer, ServedRequest) {
    let is_tunnel = request.method() == Method::CONNECT;
    let refused = |refusal: Refusal| {
        if refusal.0 != StatusCode::FORBIDDEN {
            shared.counters.failed();
        }
        (refusal_response(refusal), ServedRequest::Refused)
    };
    let asked = if is_tunnel { asked_tunnel(&request) } else { forward::asked_host(&request) };
    let place = match asked {
        Ok(place) => place,
        Err(refusal) => return refused(refusal),
    };
    let target = match target::reach(&place, shared).await {
        Ok(target) => target,
        Err(TargetError::Denied(denial)) => return refused((StatusCode::FORBIDDEN, denial.to_string())),
        Err(TargetError::Failed { status, reason }) => return refused((status, reason)),
    };
    if is_tunnel {
        shared.counters.tunnel();
        let plugin = hyper::upgrade::on(&mut request);
        return (Response::new(Either::Left(Full::default())), ServedRequest::Tunnel { plugin, target });
    }
    match forward::forward(request, &place, target, shared, deadline).await {
        Ok(response) => {
            shared.counters.request();
            (response.map(Either::Right), ServedRequest::Forwarded)
        }
        Err(refusal) => refused(refusal),
    }
}

/// The target of a CONNECT request.
fn asked_tunnel(request: &Request<Incoming>) -> Result<HostPort, Refusal> {
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
    parse_target(&asked)
}

fn refusal_response((status, text): Refusal) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(text + "\n")));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("CONNECT"));
    }
    answer
}
