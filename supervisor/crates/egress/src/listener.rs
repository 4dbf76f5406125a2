//! Accepts the connections of a plugin, from a unix socket or on its loopback interface.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use talon_plugin_config::host_port::HostPort;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::proxy_state::{ProxyState, SLOT_WAIT};
use crate::{direct, serve};

/// The pause after the kernel refused an accept because descriptors ran out. Another connection has to end
/// first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Fits into the send buffer of a new socket, so that writing never waits for the reader.
const BUSY_RESPONSE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    connection: close\r\n\r\nall 64 connections of this plugin are in use: close some, or try again later\n";

/// What connections to a listener are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenerPurpose {
    /// Requests of HTTP, which name their target.
    Requests,
    /// This target: the connection is a tunnel to it from its first byte.
    Tunnel(HostPort),
}

/// A listening socket of either family.
pub(crate) trait Listener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Whether the peer may use this proxy.
    fn may_connect(stream: &Self::Stream, shared: &ProxyState) -> bool;

    /// Writes without waiting. The plugin may not receive it, which does no harm.
    fn try_write(stream: &Self::Stream, bytes: &[u8]);
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Self::accept(self).await.map(|(stream, _)| stream)
    }

    fn may_connect(stream: &UnixStream, shared: &ProxyState) -> bool {
        shared.may_connect(stream)
    }

    fn try_write(stream: &UnixStream, bytes: &[u8]) {
        let _ = stream.try_write(bytes);
    }
}

/// Inside a plugin's network namespace, where nothing but the plugin can connect to it.
impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // A tunnel carries a foreign protocol; its small messages must not be delayed.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn may_connect(_: &TcpStream, _: &ProxyState) -> bool {
        true
    }

    fn try_write(stream: &TcpStream, bytes: &[u8]) {
        let _ = stream.try_write(bytes);
    }
}

/// Runs until its task is aborted. It owns the connections, so they end with it.
pub(crate) async fn accept_loop<L: Listener>(
    listener: Arc<L>,
    purpose: ListenerPurpose,
    shared: Arc<ProxyState>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) if !L::may_connect(&stream, &shared) => {}
                Ok(stream) => match timeout(SLOT_WAIT, shared.slots.clone().acquire_owned()).await {
                    Ok(Ok(slot)) => {
                        let (purpose, shared) = (purpose.clone(), shared.clone());
                        connections.spawn(async move {
                            let _slot = slot;
                            match purpose {
                                ListenerPurpose::Requests => serve::connection(stream, shared).await,
                                ListenerPurpose::Tunnel(place) => direct::connection(stream, &place, &shared).await,
                            }
                        });
                    }
                    Ok(Err(_)) | Err(_) => {
                        shared.counters.turned_away();
                        if purpose == ListenerPurpose::Requests {
                            L::try_write(&stream, BUSY_RESPONSE);
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a plugin's proxy cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}
