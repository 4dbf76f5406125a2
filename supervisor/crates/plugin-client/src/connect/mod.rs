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

mod error;
mod fs_rights;
mod identity_record;
mod peer;
mod stream;
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

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use talon_sanitize::{Sanitized, sanitized};
use talon_wire::frames::FrameLimits;
use talon_wire::{BusyFlag, LazyWritable};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

use self::error::TLS_HANDSHAKE;
pub use self::error::{ConnectError, TlsError};
pub use self::identity_record::IdentityRecord;
pub use self::peer::is_descendant;
use self::stream::PlainStream;
use self::tls::EncryptedStream;
pub use self::tls::{ClientIdentity, Tls};
use crate::handshake::Address;
use crate::socket_dir::{SocketDir, proc_fd_path};

/// A connection, encrypted or not.
pub type Connection = Either<PlainStream, EncryptedStream>;

/// The address of one process's connections, and the expected peer.
#[derive(Debug, Clone)]
pub struct Target {
    endpoint: Endpoint,
    uid: u32,
    /// The listener must be this process or a descendant.
    monitor_pid: u32,
    /// Set if connections are encrypted.
    tls: Option<Tls>,
    frames: FrameLimits,
}

#[derive(Debug, Clone)]
enum Endpoint {
    /// A socket of the plugin, by its path in the plugin's directory.
    Unix {
        dir: Arc<SocketDir>,
        socket: PathBuf,
    },
    /// The listening socket that was passed to the plugin.
    PassedListener(Arc<SocketDir>),
    Tcp(SocketAddr),
}

impl Target {
    /// Checks the address of a handshake.
    pub fn new(
        address: &Address,
        dir: &Arc<SocketDir>,
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
        Ok(Self { endpoint: place, uid, monitor_pid, tls: None, frames: FrameLimits::default() })
    }

    /// Encrypts every connection, if `tls` is set.
    pub fn with_tls(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// Limits what each connection may bring beside answers.
    pub fn with_frames(self, frames: FrameLimits) -> Self {
        Self { frames, ..self }
    }

    /// What each connection may bring beside answers.
    pub(crate) fn frames(&self) -> FrameLimits {
        self.frames
    }

    /// Opens one connection and verifies its peer. The connection reads from `busy` whether it has many
    /// calls.
    pub async fn connect(&self, busy: &BusyFlag) -> Result<Connection, ConnectError> {
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

    async fn connect_unix(&self, dir: &SocketDir, socket: &Path) -> Result<LazyWritable, ConnectError> {
        let connect = |source| ConnectError::Connect { shown: quoted_path(socket), source };
        let stream = UnixStream::from_std(self.connect_unix_nonblocking(dir, socket)?).map_err(connect)?;
        // The kernel reports the process that called listen(), which may not be the one that sends.
        let peer = stream.peer_cred().map_err(connect)?;
        self.check_uid("who listens on its socket", peer.uid())?;
        let pid = peer.pid().unwrap_or(0);
        if !peer::is_descendant(pid, self.monitor_pid) {
            return Err(match peer::exists(pid) {
                true => ConnectError::WrongProcess { pid },
                // Nothing tells any more whose it was. A plugin that dies right after its handshake ends here.
                false => ConnectError::ListenerEnded { pid },
            });
        }
        LazyWritable::new(stream).map_err(connect)
    }

    /// Never blocks: a full queue refuses the connection.
    fn connect_unix_nonblocking(
        &self,
        dir: &SocketDir,
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
        let connect = |source| ConnectError::Connect { shown: sanitized!("{}", addr), source };
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

async fn connect_passed_listener(dir: &SocketDir) -> Result<LazyWritable, ConnectError> {
    let connect = |source| ConnectError::Connect { shown: quoted_path(&dir.listening_path()), source };
    let Some(socket) = dir.listening() else { return Err(connect(io::ErrorKind::NotFound.into())) };
    UnixStream::connect(proc_fd_path(socket)).await.and_then(LazyWritable::new).map_err(connect)
}

fn quoted_path(path: &Path) -> Sanitized {
    crate::handshake::excerpt(&path.display().to_string())
}

#[cfg(test)]
mod tests;
