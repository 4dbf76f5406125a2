//! The supervisor's connections to a service: socket pairs, of which one end is passed to the service.

use std::io;
use std::os::unix::net;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tower::Service;

type Stream = TokioIo<UnixStream>;

/// A connector for a channel.
pub(crate) trait Connector:
    Service<Uri, Response = Stream, Error = io::Error, Future = BoxFuture<'static, io::Result<Stream>>>
    + Send
    + 'static
{
}

impl<S> Connector for S where
    S: Service<Uri, Response = Stream, Error = io::Error, Future = BoxFuture<'static, io::Result<Stream>>>
        + Send
        + 'static
{
}

/// A connector that calls `connect`, which passes the other end to the service.
pub(crate) fn connector(
    connect: impl Fn() -> io::Result<net::UnixStream> + Send + 'static,
) -> impl Connector {
    // The URI only fills a header: there is a single target.
    tower::service_fn(move |_: Uri| {
        let connected = connect();
        async move {
            let stream = connected?;
            stream.set_nonblocking(true)?;
            Ok(TokioIo::new(UnixStream::from_std(stream)?))
        }
        .boxed()
    })
}

/// A channel that connects when needed, and again after a restart of the service. Must be called within a
/// tokio runtime.
pub(crate) fn channel(connect: impl Fn() -> io::Result<net::UnixStream> + Send + 'static) -> Channel {
    Endpoint::from_static("http://service.invalid").connect_with_connector_lazy(connector(connect))
}
