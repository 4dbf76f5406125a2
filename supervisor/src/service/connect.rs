//! The supervisor's connections to a service: socket pairs, of which one end is passed to the service.

use std::io;
use std::os::unix::net;

use talon_wire::Connector;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// A connector that calls `connect`, which passes the other end to the service.
pub(crate) fn connector(connect: impl Fn() -> io::Result<net::UnixStream> + Send + 'static) -> Connector {
    Connector::new(move || {
        let connected = connect();
        async move {
            let stream = connected?;
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        }
    })
}

/// A channel that connects when needed, and again after a restart of the service. Must be called within a
/// tokio runtime.
pub(crate) fn channel(connect: impl Fn() -> io::Result<net::UnixStream> + Send + 'static) -> Channel {
    connector(connect).connect_lazy(&Endpoint::from_static("http://service.invalid"))
}
