//! The listening socket: bound here, or handed in by the supervisor, which keeps it while no gateway runs.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{SocketType, sockopt};
use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait to be accepted: while the gateway is started again, clients wait here. The kernel may allow fewer
/// (`net.core.somaxconn`).
const BACKLOG: u32 = 1024;

/// Why there is no listener. The text ends with what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be bound.
    #[error("{address} cannot be listened on: {source}; free it, or set another gateway.address")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// No socket came.
    #[error("no descriptor came with the listener")]
    Missing,
    /// It is no listening TCP socket.
    #[error("the socket that was handed in is no listening TCP socket: see the unit's ListenStream=")]
    Kind,
    /// It cannot be used.
    #[error("the listener cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl ListenError {
    /// Whether it may pass by itself: another process may free the address.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

/// Binds an address. Must be called within a tokio runtime.
///
/// # Errors
/// [`ListenError::Bind`]
pub fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let bound = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of an earlier process that still end do not hold the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bound().map_err(|source| ListenError::Bind { address, source })
}

/// A socket that was handed in. Must be called within a tokio runtime.
///
/// # Errors
/// [`ListenError`]
pub fn handed_in(descriptor: Option<OwnedFd>) -> Result<TcpListener, ListenError> {
    let socket = descriptor.ok_or(ListenError::Missing)?;
    let listens = sockopt::socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM)
        && sockopt::socket_acceptconn(&socket).unwrap_or(false);
    let listener = std::net::TcpListener::from(socket);
    // It has an IP address, and so is no unix socket.
    if !listens || listener.local_addr().is_err() {
        return Err(ListenError::Kind);
    }
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_listening_tcp_socket_is_taken() {
        let bound = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = bound.local_addr().unwrap();
        let in_use = bind(address).unwrap_err();
        assert!(in_use.is_retryable() && in_use.to_string().contains("gateway.address"), "{in_use}");
        let fd = OwnedFd::from(bound.into_std().unwrap());
        assert_eq!(handed_in(Some(fd)).unwrap().local_addr().unwrap(), address);
        let unix = std::os::unix::net::UnixStream::pair().unwrap().0;
        assert!(matches!(handed_in(Some(unix.into())), Err(ListenError::Kind)));
        assert!(matches!(handed_in(None), Err(ListenError::Missing)));
    }
}
