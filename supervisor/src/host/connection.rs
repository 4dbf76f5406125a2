//! One connection to the host service. Each request runs on a separate task.
//!
//! Nearly all requests are `Execute`. It is served on h2 directly, as the SDK does on the plugin's side: see
//! `talon-wire`. All other requests go to tonic's generated server, behind the [gate](super::gate).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::Request;
use http::request::Parts;
use talon_listen::{BODY_TIMEOUT, body_timed_out};
use talon_proto::host::host_server::{Host, HostServer};
use talon_wire::{
    Answer, LoadDetector, answer, deadline_of, is_plain, message, request_body, run_until_reset, send,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::server::Connected as _;
use tower::Service as _;

use super::accept::Connection;
use super::gate::{AdmittedRequest, Gate, RequestLimiter};
use super::limits::{CLOSE_TIMEOUT, REQUEST_SLACK_BYTES, RequestLimits};
use super::state_proxy::{HostRoutes, StateProxy};
use super::{FRAME_BYTES, WINDOW_BYTES};
use crate::peer::Peer;

/// Maximum size of a request's headers; usual ones have a few hundred bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// How many requests of a connection without a role are refused with the reason; then it is closed. A client
/// asks once or twice before it gives up.
const MAX_REFUSALS: u32 = 4;

const EXECUTE: &str = "/talon.host.v1.Host/Execute";

/// Answers the requests of a server's connections.
pub(super) struct ConnectionService<H: Host> {
    host: Arc<H>,
    requests: RequestLimiter,
    requests_per_connection: u32,
    others: Gate<HostRoutes<HostServer<H>>>,
    max_request_bytes: usize,
}

impl<H: Host> ConnectionService<H> {
    /// The host service, with operators' requests to the state service beside it. Two services need no
    /// router, and a router would add a web framework.
    pub(super) fn new(
        host: H,
        operators: StateProxy,
        max_argument_bytes: usize,
        limits: RequestLimits,
    ) -> Arc<Self> {
        let (host, requests) = (Arc::new(host), RequestLimiter::new(limits));
        let max_request_bytes = max_argument_bytes.saturating_add(REQUEST_SLACK_BYTES);
        let server = HostServer::from_arc(host.clone()).max_decoding_message_size(max_request_bytes);
        let others = Gate::new(HostRoutes { host: server, operators }, requests.clone());
        let requests_per_connection = limits.of_connection;
        Arc::new(Self { host, requests, requests_per_connection, others, max_request_bytes })
    }

    /// Serves a connection until the client closes it. Once `stop` is cancelled, no further request is
    /// accepted, and the connection ends when those in flight are answered, at the latest [`CLOSE_TIMEOUT`]
    /// after that, whatever its client does.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) async fn connection(
        self: Arc<Self>,
        connection: Connection,
        stop: CancellationToken,
    ) -> Result<(), h2::Error> {
        let peer = connection.connect_info();
        let mut load = LoadDetector::new(connection.client().busy().clone());
        let requests = TaskTracker::new();
        let mut abandoned = pin!(async {
            stop.cancelled().await;
            requests.close();
            // A request that was sent before the client knew may still come.
            loop {
                requests.wait().await;
                sleep(CLOSE_TIMEOUT).await;
                if requests.is_empty() {
                    break;
                }
            }
        });
        let mut handshake = Builder::new();
        let handshake = handshake
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(self.requests_per_connection)
            .max_header_list_size(MAX_HEADER_BYTES)
            .handshake::<_, Bytes>(connection);
        let mut connection = tokio::select! {
            connection = handshake => connection?,
            () = &mut abandoned => return Ok(()),
        };
        let mut stopped = pin!(stop.cancelled());
        let mut stopping = false;
        let mut requests_left = if peer.rights.is_none() { MAX_REFUSALS } else { u32::MAX };
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stopped, if !stopping => {
                    stopping = true;
                    connection.graceful_shutdown();
                    continue;
                }
                accepted = poll_fn(|cx| {
                    let accepted = connection.poll_accept(cx);
                    if accepted.is_pending() {
                        load.turn();
                    }
                    accepted
                }) => accepted,
                () = &mut abandoned, if stopping => return Ok(()),
            };
            let Some(accepted) = accepted else { return Ok(()) };
            let (mut request, respond) = accepted?;
            load.request();
            match peer_of(&peer, &mut request) {
                Ok(peer) => drop(request.extensions_mut().insert(peer)),
                Err(status) => {
                    requests.spawn(answer(respond, None, async { Err(status) }));
                    continue;
                }
            }
            if peer.rights.is_none() {
                requests_left = requests_left.saturating_sub(1);
                if requests_left == 0 {
                    connection.graceful_shutdown();
                }
            }
            if request.uri().path() == EXECUTE && is_plain(request.headers()) {
                requests.spawn(self.clone().execute(request, respond));
            } else {
                requests.spawn(self.clone().other(request, respond));
            }
        }
    }

    /// One `Execute`. A future is copied when its task is created and when it ends, so this one is kept
    /// small: an `async fn` would hold its arguments twice.
    fn execute(
        self: Arc<Self>,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> impl Future<Output = ()> + Send {
        let deadline = deadline_of(request.headers());
        let (Parts { headers, extensions, .. }, body) = request.into_parts();
        async move {
            // The permit is held until the client has received the answer.
            let mut place = None;
            let answer = {
                let work = pin!(async {
                    let AdmittedRequest { place: admitted, mut unread } = self.requests.admit(&extensions)?;
                    place = Some(admitted);
                    let count = |bytes| unread.grow(bytes);
                    let read = message::read_counted(body, self.max_request_bytes, count);
                    let request = timeout(BODY_TIMEOUT, read).await.map_err(|_| body_timed_out())??;
                    drop(unread);
                    let metadata = MetadataMap::from_headers(headers);
                    let request = tonic::Request::from_parts(metadata, extensions, request);
                    let answer = self.host.execute(request).await?;
                    Ok(Answer::Message(message::framed(answer.get_ref())))
                });
                run_until_reset(&mut respond, deadline, work).await
            };
            if let Some(answer) = answer {
                send(respond, answer).await;
            }
            drop(place);
        }
    }

    /// Any other request.
    async fn other(self: Arc<Self>, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let deadline = deadline_of(request.headers());
        let work = async {
            match self.others.clone().call(request.map(request_body)).await {
                Ok(answer) => Ok(Answer::Other(answer)),
                Err(never) => match never {},
            }
        };
        answer(respond, deadline, work).await;
    }
}

/// Whom a request is for: on the gateway's connection each says so itself.
fn peer_of(peer: &Peer, request: &mut Request<RecvStream>) -> Result<Peer, Status> {
    if !peer.is_gateway() {
        return Ok(peer.clone());
    }
    let metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
    let asked = peer.of_request(&metadata);
    *request.headers_mut() = metadata.into_headers();
    asked
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
