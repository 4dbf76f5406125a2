//! Serves the host API on one connection that did not come through `host.sock`: the supervisor created it and
//! states who the peer is.

use std::io;
use std::os::unix::net;

use talon_proto::host::host_server::Host;
use talon_wire::frames::FrameLimits;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::accept::{ConnectedClient, serve_client};
use super::connection::ConnectionService;
use super::state_proxy::StateProxy;
use crate::agent::AgentConnection;
use crate::peer::Peer;

/// Serves `stream` until its other end is closed. All requests count as requests of `peer`, whichever
/// process holds the other end. The limits of one connection to `host.sock` apply, with separate
/// counters. Must be called within a tokio runtime.
///
/// # Errors
/// When there are too many open files.
pub fn serve_agent(
    stream: net::UnixStream,
    peer: Peer,
    service: impl Host,
    max_argument_bytes: usize,
) -> io::Result<AgentConnection> {
    let held = stream.try_clone()?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let stop = CancellationToken::new();
    let connection = serve_client(stream, FrameLimits::default(), ConnectedClient::new(peer, ()))?;
    // Operators' requests are accepted on `host.sock` only.
    let serving = ConnectionService::new(service, StateProxy::new(None), max_argument_bytes);
    let served = serving.connection(connection, stop.clone());
    let task = tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::warn!(%error, "a connection of the supervisor's own making ended");
        }
    });
    Ok(AgentConnection::new(held, stop, task))
}
