//! gRPC channels on streams that the caller opens.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::codegen::http::Uri;
use tonic::codegen::{Service, StdError};
use tonic::transport::{Channel, Endpoint, Error};

/// A stream that a channel can use.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

type Opened = TokioIo<Box<dyn Duplex>>;
type Opening = Pin<Box<dyn Future<Output = Result<Opened, StdError>> + Send>>;

/// Opens a stream whenever its channel needs one.
///
/// tonic's channel is generic over its connector, and so is the HTTP/2 client in it: each connector of a type of its
/// own adds 100 KiB of machine code, in each crate that names it. This is the one type for all of them.
pub struct Connector(Box<dyn FnMut() -> Opening + Send>);

impl Connector {
    /// A connector that calls `open`. Its errors stay in the chain of causes of the requests that fail for them.
    pub fn new<F, S, E>(mut open: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<S, E>> + Send + 'static,
        S: Duplex + 'static,
        E: Into<StdError>,
    {
        Self(Box::new(move || {
            let opening = open();
            Box::pin(async move {
                let stream: Box<dyn Duplex> = Box::new(opening.await.map_err(Into::into)?);
                Ok(TokioIo::new(stream))
            })
        }))
    }

    /// A channel that is connected now, and again whenever it needs to be.
    ///
    /// # Errors
    /// When the first stream cannot be opened, or ends at once.
    pub fn connect(self, endpoint: Endpoint) -> Pin<Box<dyn Future<Output = Result<Channel, Error>> + Send>> {
        Box::pin(async move { endpoint.connect_with_connector(self).await })
    }

    /// A channel that connects at its first request. Must be called within a tokio runtime.
    #[must_use]
    pub fn connect_lazy(self, endpoint: &Endpoint) -> Channel {
        endpoint.connect_with_connector_lazy(self)
    }
}

impl Service<Uri> for Connector {
    type Response = Opened;
    type Error = StdError;
    type Future = Opening;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        Poll::Ready(Ok(()))
    }

    /// The URI only fills a header: there is a single target.
    fn call(&mut self, _: Uri) -> Opening {
        (self.0)()
    }
}
