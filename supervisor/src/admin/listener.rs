//! The listeners for HTTP.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketType, sockopt};
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::socket::{BindError, HostSocket, LiveSocket, SocketFile, bind_named};

/// The socket's name in the runtime directory.
pub const SOCKET_NAME: &str = "admin.sock";

/// Decides whether a peer on a unix socket may connect.
pub type AdmissionPolicy = Arc<dyn Fn(&UCred) -> bool + Send + Sync>;

/// Why an inherited socket is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// Other machines could read the metrics.
    #[error(
        "the listener {address} for metrics can be reached from other machines: let its ListenStream= begin with 127.0.0.1: or \
         [::1]:, and put a proxy in front of it for anybody else"
    )]
    NotLoopback {
        /// Its address.
        address: SocketAddr,
    },
    /// It is not a listening stream socket.
    #[error(
        "the descriptor for metrics that was handed in is no listening stream socket: correct its .socket unit"
    )]
    NotAListener,
    /// A system call failed.
    #[error("the descriptor for metrics that was handed in cannot be used: {0}; see its .socket unit")]
    Io(#[from] io::Error),
}

/// Accepts connections.
#[derive(Debug)]
pub struct Listener(Inner);

#[derive(Debug)]
enum Inner {
    Unix {
        listener: UnixListener,
        /// The socket's file, if we own it; removed on drop.
        _file: Option<SocketFile>,
    },
    Tcp(TcpListener),
}

/// An accepted connection of an admitted peer.
pub(super) enum Connection {
    Unix(UnixStream),
    /// On loopback, where peers have no credentials.
    Tcp(TcpStream),
}

impl Listener {
    /// Binds `admin.sock` in this directory, whose lock the caller holds, for owner and group. A socket on
    /// which a process still listens belongs to the supervisor that hands over to this one, and is replaced.
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`]; nothing is left behind.
    pub fn bind(runtime_dir: &Path, group: Option<u32>) -> Result<Self, BindError> {
        let HostSocket { listener, file } = bind_named(runtime_dir, SOCKET_NAME, group, LiveSocket::Replace)?;
        let listener = UnixListener::from_std(listener).map_err(|source| BindError::Io {
            what: "listen on",
            path: runtime_dir.join(SOCKET_NAME),
            source,
        })?;
        Ok(Self(Inner::Unix { listener, _file: file }))
    }

    /// Uses an inherited listening socket: a unix socket, or TCP on loopback. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`ListenerError`]
    pub fn inherited(socket: OwnedFd) -> Result<Self, ListenerError> {
        let listens = sockopt::socket_acceptconn(&socket).unwrap_or(false)
            && sockopt::socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM);
        if !listens {
            return Err(ListenerError::NotAListener);
        }
        rustix::io::ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
        match sockopt::socket_domain(&socket).map_err(io::Error::from)? {
            AddressFamily::UNIX => {
                let listener = UnixListener::from_std(socket.into())?;
                Ok(Self(Inner::Unix { listener, _file: None }))
            }
            AddressFamily::INET | AddressFamily::INET6 => {
                let listener = TcpListener::from_std(socket.into())?;
                let address = listener.local_addr()?;
                if !address.ip().to_canonical().is_loopback() {
                    return Err(ListenerError::NotLoopback { address });
                }
                Ok(Self(Inner::Tcp(listener)))
            }
            _ => Err(ListenerError::NotAListener),
        }
    }

    /// The next connection; `None` if its peer was rejected.
    pub(super) async fn accept(&self, admit: &AdmissionPolicy) -> io::Result<Option<Connection>> {
        match &self.0 {
            Inner::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                // A peer that is gone already has no credentials, and needs no answer.
                let known = stream.peer_cred().is_ok_and(|peer| admit(&peer));
                Ok(known.then_some(Connection::Unix(stream)))
            }
            Inner::Tcp(listener) => Ok(Some(Connection::Tcp(listener.accept().await?.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: METRIC-11, RULE-2
    #[tokio::test]
    async fn a_listener_for_other_machines_is_refused() {
        let open = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let error = Listener::inherited(open.into()).unwrap_err();
        assert!(matches!(error, ListenerError::NotLoopback { .. }), "{error}");
        let loopback = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(Listener::inherited(loopback.into()).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let unix = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        assert!(Listener::inherited(unix.into()).is_ok());
    }

    #[tokio::test]
    async fn the_socket_of_who_hands_over_gives_way_and_a_file_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SOCKET_NAME);
        let old = Listener::bind(dir.path(), None).unwrap();
        let new = Listener::bind(dir.path(), None).unwrap();
        drop(old);
        assert!(path.exists(), "the old one leaves its successor's socket alone");
        drop(new);
        assert!(!path.exists());
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(Listener::bind(dir.path(), None), Err(BindError::NotASocket { .. })));
    }

    // Promises: METRIC-11
    #[tokio::test]
    async fn what_does_not_listen_is_refused() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(matches!(Listener::inherited(one.into()), Err(ListenerError::NotAListener)));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(Listener::inherited(file.into()), Err(ListenerError::NotAListener)));
        let packets = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(matches!(Listener::inherited(packets.into()), Err(ListenerError::NotAListener)));
    }
}
