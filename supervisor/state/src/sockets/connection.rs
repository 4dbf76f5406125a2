//! Serves one HTTP/2 connection.

use std::convert::Infallible;
use std::pin::pin;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use talon_listen::PrefaceTimeout;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tower_service::Service;

use crate::gate::{CountedBody, Gate};
use crate::limits::{FRAME_BYTES, IDLE_CLOSE_GRACE, MAX_HEADER_BYTES, MAX_STREAMS, WINDOW_BYTES};

/// Serves a connection until its client closes it. After `closed` running requests are finished and no new
/// ones accepted; dropping the future cuts the connection off. A connection without running requests is cut
/// off if its client does not confirm the end soon.
pub(super) async fn serve<S>(stream: UnixStream, gate: Gate<S>, closed: CancellationToken)
where
    S: Service<http::Request<CountedBody>, Response = http::Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let mut server = http2::Builder::new(TokioExecutor::new());
    server
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES);
    let activity = gate.activity();
    let mut connection = pin!(server.serve_connection(TokioIo::new(PrefaceTimeout::new(stream, ())), gate));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = closed.cancelled() => {
            connection.as_mut().graceful_shutdown();
            loop {
                match tokio::time::timeout(IDLE_CLOSE_GRACE, &mut connection).await {
                    Ok(ended) => break ended,
                    Err(_) if activity.is_idle() => {
                        tracing::debug!("a connection without requests was cut off: its client does not answer");
                        return;
                    }
                    Err(_) => {}
                }
            }
        }
    };
    if let Err(error) = ended {
        // A client that disconnects without a GOAWAY, as one that is killed does.
        tracing::debug!(%error, "a connection ended");
    }
}
