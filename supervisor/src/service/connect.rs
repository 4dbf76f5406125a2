//! Connections of our own to a service: one end of a pair, of which the other is handed over.

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

/// What makes connections for a channel.
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

/// Makes connections by `connect`, which hands the other end over.
pub(crate) fn connector(
    connect: impl Fn() -> io::Result<net::UnixStream> + Send + 'static,
) -> impl Connector {
    // The URI only fills a header: there is one place to connect to.
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

/// One connection, made when it is needed and again when the service was started again. Must be called within a tokio runtime.
pub(crate) fn channel(connect: impl Fn() -> io::Result<net::UnixStream> + Send + 'static) -> Channel {
    Endpoint::from_static("http://service.invalid").connect_with_connector_lazy(connector(connect))
}
