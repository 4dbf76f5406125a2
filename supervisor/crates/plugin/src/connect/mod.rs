//! Connects to the address in a handshake line, without trusting it.
//!
//! A plugin may print any path, put a symlink there, or name another program's socket. So the socket is
//! reached through the descriptor of the plugin's own directory, it has to belong to the plugin's uid, and
//! the listener has to be one of the plugin's processes. All of this is checked again on every reconnect.
//! Going through the descriptor also avoids the limit on the length of a socket's path.
//!
//! A socket that the supervisor bound and passed to the plugin needs no check: it is connected to by its
//! descriptor. The kernel would report the supervisor as its peer, which called listen(); another process
//! that answers on it got it from the plugin.

mod fs_rights;
mod peer;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use talon_sanitize::{Sanitized, inert};
pub(crate) use talon_wire::BusyFlag;
use talon_wire::LazyWritable;
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

pub(crate) use self::peer::is_descendant;
use self::tls::EncryptedStream;
pub(crate) use self::tls::{ClientIdentity, Tls};
use crate::handshake::Address;
use crate::rundir::{PrivateDir, proc_fd_path};

/// The timeout of the TLS handshake: the plugin's half of a key exchange takes less than ten seconds even on a loaded
/// machine. Then the connection is given up, because other calls wait for it.
const TLS_HANDSHAKE: Duration = Duration::from_secs(10);

/// A connection before encryption.
pub(crate) type PlainStream = Either<LazyWritable, TcpStream>;

/// A connection, encrypted or not.
pub(crate) type Connection = Either<PlainStream, EncryptedStream>;

/// The address of one process's connections, and the expected peer.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    endpoint: Endpoint,
    uid: u32,
    /// The listener must be this process or a descendant.
    monitor_pid: u32,
    /// Set if connections are encrypted.
    tls: Option<Tls>,
}

#[derive(Debug, Clone)]
enum Endpoint {
    /// A socket of the plugin, by its path in the plugin's directory.
    Unix {
        dir: Arc<PrivateDir>,
        socket: PathBuf,
    },
    /// The listening socket that was passed to the plugin.
    PassedListener(Arc<PrivateDir>),
    Tcp(SocketAddr),
}

/// Why there is no connection. Texts of the plugin are bounded and without control characters.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ConnectError {
    /// Its handshake named an address outside its own directory.
    #[error("its handshake names {shown:?}, which is not in its own directory {}: it has to make its socket in PLUGIN_UNIX_SOCKET_DIR or TMPDIR", dir.display())]
    Outside {
        /// The address.
        shown: Sanitized,
        /// Its own directory.
        dir: PathBuf,
    },
    /// It listens on TCP, which is not allowed.
    #[error(
        "it listens on the TCP address {addr}, which other users of this machine can reach: let it use a unix socket, or set allow_tcp for it"
    )]
    TcpNotAllowed {
        /// The address.
        addr: SocketAddr,
    },
    /// The socket cannot be opened.
    #[error(
        "the socket {shown:?} that its handshake names cannot be opened: {source}; a plugin has to listen before it prints the line"
    )]
    Open {
        /// The path.
        shown: Sanitized,
        /// Why; a symlink shows as ELOOP.
        source: io::Error,
    },
    /// The path is not a socket.
    #[error("{shown:?}, which its handshake names, is no socket")]
    NoSocket {
        /// The path.
        shown: Sanitized,
    },
    /// The socket or its listener belongs to another user.
    #[error("{what} belongs to uid {found}, and the plugin runs as uid {expected}")]
    WrongUid {
        /// What belongs to the other user.
        what: &'static str,
        /// Its uid.
        found: u32,
        /// The plugin's uid.
        expected: u32,
    },
    /// The listener is not one of the plugin's processes.
    #[error("process {pid}, which listens on its socket, is none of the plugin's processes")]
    WrongProcess {
        /// The listener.
        pid: i32,
    },
    /// The connection failed.
    #[error("cannot connect to {shown:?}: {source}")]
    Connect {
        /// The address.
        shown: Sanitized,
        /// Why.
        source: io::Error,
    },
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Why there is no TLS with a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TlsError {
    /// This build does not include TLS.
    #[cfg_attr(feature = "tls", expect(dead_code, reason = "used by builds without TLS"))]
    #[error(
        "its tls is auto-mtls, and this program was built without TLS: build it with the feature `tls`, or set its tls to off"
    )]
    NotBuilt,
    /// The supervisor's certificate could not be created.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "used by builds with TLS"))]
    #[error(
        "the certificate that it is to know its host by cannot be made: {0}; set its tls to off to run it without"
    )]
    Make(Sanitized),
    /// The plugin was asked for TLS, but its handshake holds no certificate.
    #[error(
        "its tls is auto-mtls, and its handshake holds no certificate: a program that serves with HashiCorp's go-plugin prints one when it is asked, others do not know of it; set its tls to off"
    )]
    NoCertificate,
    /// The certificate in the handshake is malformed.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "used by builds with TLS"))]
    #[error(
        "the sixth field of its handshake {problem}: it has to be the server's certificate, DER in base64 without padding, as HashiCorp's go-plugin prints it"
    )]
    Certificate {
        /// What is wrong.
        problem: &'static str,
    },
    /// Its server presents another certificate.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "used by builds with TLS"))]
    #[error(
        "the certificate that its server shows is not the one in its handshake: the process that answers on its socket did not print the line; let the plugin serve with the certificate that it prints"
    )]
    OtherCertificate,
    /// The TLS handshake failed.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "used by builds with TLS"))]
    #[error(
        "TLS with it failed: {0}; it has to speak TLS 1.2 or later and to take the certificate in PLUGIN_CLIENT_CERT, or set its tls to off"
    )]
    Failed(Sanitized),
    /// The TLS handshake timed out.
    #[error("its TLS handshake was not over within {} s; see its log, or set its tls to off", TLS_HANDSHAKE.as_secs())]
    TimedOut,
}

impl Target {
    /// Checks the address of a handshake.
    pub(crate) fn new(
        address: &Address,
        dir: &Arc<PrivateDir>,
        uid: u32,
        monitor_pid: u32,
        allow_tcp: bool,
    ) -> Result<Self, ConnectError> {
        let place = match address {
            Address::Tcp(addr) if !allow_tcp => return Err(ConnectError::TcpNotAllowed { addr: *addr }),
            Address::Tcp(addr) => Endpoint::Tcp(*addr),
            Address::Unix(path) if dir.listening().is_some() && *path == dir.listening_path() => {
                Endpoint::PassedListener(dir.clone())
            }
            Address::Unix(path) => match path.strip_prefix(dir.path()) {
                // The parser refused "." and ".."; the kernel will refuse symlinks.
                Ok(socket) if socket != Path::new("") => {
                    Endpoint::Unix { dir: dir.clone(), socket: socket.to_owned() }
                }
                _ => {
                    return Err(ConnectError::Outside {
                        shown: quoted_path(path),
                        dir: dir.path().to_owned(),
                    });
                }
            },
        };
        Ok(Self { endpoint: place, uid, monitor_pid, tls: None })
    }

    /// Encrypts every connection, if `tls` is set.
    pub(crate) fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// Opens one connection and verifies its peer. The connection reads from `busy` whether it has many calls.
    pub(crate) async fn connect(&self, busy: &BusyFlag) -> Result<Connection, ConnectError> {
        let mut io = match &self.endpoint {
            Endpoint::Unix { dir, socket } => Either::Left(self.connect_unix(dir, socket).await?),
            Endpoint::PassedListener(dir) => Either::Left(connect_passed_listener(dir).await?),
            Endpoint::Tcp(addr) => Either::Right(self.connect_tcp(*addr).await?),
        };
        if let Either::Left(quiet) = &mut io {
            quiet.set_busy_flag(busy);
        }
        Ok(match &self.tls {
            None => Either::Left(io),
            Some(tls) => {
                let secured = tokio::time::timeout(TLS_HANDSHAKE, tls.secure(io)).await;
                Either::Right(secured.map_err(|_| TlsError::TimedOut)??)
            }
        })
    }

    async fn connect_unix(&self, dir: &PrivateDir, socket: &Path) -> Result<LazyWritable, ConnectError> {
        let connect = |source| ConnectError::Connect { shown: quoted_path(socket), source };
        let stream = UnixStream::from_std(self.connect_unix_nonblocking(dir, socket)?).map_err(connect)?;
        // The kernel reports the process that called listen(), which may not be the one that sends.
        let peer = stream.peer_cred().map_err(connect)?;
        self.check_uid("who listens on its socket", peer.uid())?;
        let pid = peer.pid().unwrap_or(0);
        if !peer::is_descendant(pid, self.monitor_pid) {
            return Err(ConnectError::WrongProcess { pid });
        }
        LazyWritable::new(stream).map_err(connect)
    }

    /// Never blocks: a full queue refuses the connection.
    fn connect_unix_nonblocking(
        &self,
        dir: &PrivateDir,
        socket: &Path,
    ) -> Result<StdUnixStream, ConnectError> {
        fs_rights::with_rights_of(self.uid, || {
            let open = |e: Errno| ConnectError::Open { shown: quoted_path(socket), source: e.into() };
            let fd = dir.open(socket).map_err(open)?;
            let stat = fstat(&fd).map_err(open)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
                return Err(ConnectError::NoSocket { shown: quoted_path(socket) });
            }
            self.check_uid("its socket", stat.st_uid)?;
            let connect = |e: Errno| ConnectError::Connect { shown: quoted_path(socket), source: e.into() };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let stream =
                socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(connect)?;
            // Through the descriptor, so that the checked socket is the one connected to.
            let address = SocketAddrUnix::new(proc_fd_path(fd.as_fd())).map_err(connect)?;
            rustix::net::connect(&stream, &address).map_err(connect)?;
            Ok(stream.into())
        })
    }

    /// TCP does not identify the peer process, so the owner of the listening port is checked instead.
    async fn connect_tcp(&self, addr: SocketAddr) -> Result<TcpStream, ConnectError> {
        let connect = |source| ConnectError::Connect { shown: inert!("{}", addr), source };
        for uid in peer::tcp_listener_uids(addr.port()).map_err(connect)? {
            self.check_uid("who listens on its TCP port", uid)?;
        }
        let stream = TcpStream::connect(addr).await.map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        Ok(stream)
    }

    fn check_uid(&self, what: &'static str, found: u32) -> Result<(), ConnectError> {
        if found == self.uid {
            return Ok(());
        }
        Err(ConnectError::WrongUid { what, found, expected: self.uid })
    }
}

async fn connect_passed_listener(dir: &PrivateDir) -> Result<LazyWritable, ConnectError> {
    let connect = |source| ConnectError::Connect { shown: quoted_path(&dir.listening_path()), source };
    let Some(socket) = dir.listening() else { return Err(connect(io::ErrorKind::NotFound.into())) };
    UnixStream::connect(proc_fd_path(socket)).await.and_then(LazyWritable::new).map_err(connect)
}

fn quoted_path(path: &Path) -> Sanitized {
    crate::handshake::excerpt(&path.display().to_string())
}

#[cfg(test)]
mod tests;
