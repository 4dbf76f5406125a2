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
use super::limits::RequestLimits;
use super::state_proxy::StateProxy;
use crate::agent::AgentConnection;
use crate::config::HostLimits;
use crate::peer::Peer;

/// Serves `stream` until its other end is closed. All requests count as requests of `peer`, whichever
/// process holds the other end. Its limits are [`RequestLimits::of_service`], with counters of its own. Must be called within a tokio
/// runtime.
///
/// # Errors
/// When there are too many open files.
pub fn serve_agent(
    stream: net::UnixStream,
    peer: Peer,
    service: impl Host,
    max_argument_bytes: usize,
    limits: &HostLimits,
) -> io::Result<AgentConnection> {
    let limits = RequestLimits::of_service(limits, &peer);
    let held = stream.try_clone()?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let stop = CancellationToken::new();
    let connection = {
        let frames = FrameLimits::of_streams(limits.of_connection);
        serve_client(stream, frames, ConnectedClient::new(peer, ()))?
    };
    // Operators' requests are accepted on `host.sock` only.
    let serving = ConnectionService::new(service, StateProxy::new(None), max_argument_bytes, limits);
    let served = serving.connection(connection, stop.clone());
    let task = tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::warn!(%error, "a connection of the supervisor's own making ended");
        }
    });
    Ok(AgentConnection::new(held, stop, task))
}
