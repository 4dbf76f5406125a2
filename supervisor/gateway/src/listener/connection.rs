//! One connection: HTTP/1.1, over TLS if set.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::server::Server;
use super::stream::PermittedStream;
use crate::identity::ConnectedFrom;

/// The request line and all headers. Browsers and proxies send a few kilobytes; more is answered with 431.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Headers of one request.
const MAX_HEADERS: usize = 100;
/// How long a request in flight may take when the process ends; streams end by themselves then. The supervisor waits somewhat longer.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

pub(super) async fn serve_connection(server: Server, stream: PermittedStream, from: ConnectedFrom) {
    let Some(acceptor) = server.certificates.acceptor() else {
        return serve_http(server, stream, from).await;
    };
    let within = server.app.settings().limits.header_timeout;
    match timeout(within, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => serve_http(server, stream, from).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve_http<S>(server: Server, stream: S, from: ConnectedFrom)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Server { router, app, traffic, .. } = server;
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(from);
        let answering = router.clone().oneshot(request.map(Body::new));
        let traffic = traffic.clone();
        async move {
            let response: Response = answering.await?;
            traffic.answered(response.status());
            Ok::<_, Infallible>(response)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.settings().limits.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    let ending = app.ending();
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = ending.cancelled() => {
            serving.as_mut().graceful_shutdown();
            match timeout(CLOSE_GRACE, serving).await {
                Ok(served) => served,
                Err(_) => return tracing::debug!("a request was cut off, since the gateway ends"),
            }
        }
    };
    if let Err(error) = served {
        // Mostly a client that went away, that was too slow, or that speaks something else.
        tracing::debug!(error = talon_error_chain::error_chain(&error), "a connection broke");
    }
}
