//! Sockets that a service manager passes in, by their names (`FileDescriptorName=`).
//!
//! | name | contents |
//! |---|---|
//! | `host` | becomes `host.sock`: a listening unix stream socket, at any path. Its mode and owner are set by the unit |
//! | `admin` | a listener for metrics and health: a unix stream socket, or TCP on loopback. There may be several |
//! | `gateway` | becomes the gateway's listener: TCP at any address. It is passed on, and nothing is read from it |
//! | `handover` | what the previous supervisor left in the manager's store |
//!
//! Sockets of other names are not used, which is logged.

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{AddressFamily, SocketType};
use talon_sanitize::Raw;

use crate::notify::STORED_FD_NAME;

/// The name of the socket that becomes `host.sock`.
const HOST: &str = "host";
/// The name of listeners for metrics and health.
const ADMIN: &str = "admin";
/// The name of the socket that becomes the gateway's listener.
const GATEWAY: &str = "gateway";

/// Maximum number of sockets; further ones are not used, which is logged.
const MAX_SOCKETS: usize = 16;

/// The inherited sockets.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// The listener for `host.sock`. It does not block.
    pub host: Option<UnixListener>,
    /// Listeners for metrics and health.
    pub admin: Vec<AdminListener>,
    /// The gateway's listener.
    pub gateway: Option<OwnedFd>,
    /// Sealed bundles of the previous supervisor, the latest last.
    pub handover: Vec<OwnedFd>,
    /// Messages about unused sockets, because the log is not initialized yet.
    pub(super) unused: Vec<String>,
}

/// A listener for metrics and health. It does not block.
#[derive(Debug)]
pub enum AdminListener {
    /// A unix stream socket.
    Unix(UnixListener),
    /// TCP on a loopback address.
    Tcp(TcpListener),
}

/// Why an inherited socket cannot be used. The text ends with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InheritedError {
    /// Clients could not connect to the socket named `host`.
    #[error(
        "the socket that was handed in as \"host\" is no listening unix stream socket ({0}): use \
         ListenStream= with a path, and FileDescriptorName=host"
    )]
    Host(io::Error),
    /// There are several sockets named `host`.
    #[error("more than one socket was handed in as \"host\": leave one ListenStream= in the socket unit")]
    MultipleHosts,
    /// A socket named `admin` must not be served.
    #[error(
        "a socket that was handed in as \"admin\" is no listening unix stream socket and no TCP listener on loopback \
         ({0}): use ListenStream= with a path or with 127.0.0.1 or [::1], and FileDescriptorName=admin"
    )]
    Admin(io::Error),
    /// The socket named `gateway` cannot be the gateway's.
    #[error(
        "the socket that was handed in as \"gateway\" is no TCP listener ({0}): use ListenStream= with an address and port, \
         and FileDescriptorName=gateway"
    )]
    Gateway(io::Error),
    /// There are several sockets named `gateway`.
    #[error("more than one socket was handed in as \"gateway\": leave one ListenStream= in the socket unit")]
    MultipleGateways,
}

impl InheritedSockets {
    /// Takes the sockets that `$LISTEN_FDS` announces; empty without that variable. The variables are
    /// removed, so this must run before threads are started, and only once.
    ///
    /// # Errors
    /// [`InheritedError`] if a socket has one of our names but is not of that kind.
    pub fn of_process() -> Result<Self, InheritedError> {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut handed = ListenFd::from_env();
        let names: Vec<&str> = names.split(':').chain(std::iter::repeat("")).take(handed.len()).collect();
        let mut sockets = Self::default();
        for (place, name) in names.into_iter().enumerate() {
            match name {
                HOST if place < MAX_SOCKETS && sockets.host.is_some() => {
                    return Err(InheritedError::MultipleHosts);
                }
                HOST if place < MAX_SOCKETS => {
                    sockets.host = Some(host(&mut handed, place).map_err(InheritedError::Host)?);
                }
                ADMIN if place < MAX_SOCKETS => {
                    sockets.admin.push(admin(&mut handed, place).map_err(InheritedError::Admin)?);
                }
                GATEWAY if place < MAX_SOCKETS && sockets.gateway.is_some() => {
                    return Err(InheritedError::MultipleGateways);
                }
                GATEWAY if place < MAX_SOCKETS => {
                    sockets.gateway = Some(gateway(&mut handed, place).map_err(InheritedError::Gateway)?);
                }
                STORED_FD_NAME if place < MAX_SOCKETS => match parcel(&mut handed, place) {
                    Ok(parcel) => sockets.handover.push(parcel),
                    Err(error) => sockets.unused.push(format!("what the store kept is no parcel: {error}")),
                },
                _ => {
                    let name = Raw::from(name).line();
                    sockets
                        .unused
                        .push(format!("descriptor {place}, named \"{name}\": no such name is known"));
                }
            }
        }
        Ok(sockets)
    }
}

fn host(handed: &mut ListenFd, place: usize) -> io::Result<UnixListener> {
    let listener = handed.take_unix_listener(place)?.ok_or(io::ErrorKind::NotFound)?;
    listens(&listener)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn admin(handed: &mut ListenFd, place: usize) -> io::Result<AdminListener> {
    // A socket of the other kind is not consumed.
    if let Ok(Some(listener)) = handed.take_unix_listener(place) {
        listens(&listener)?;
        listener.set_nonblocking(true)?;
        return Ok(AdminListener::Unix(listener));
    }
    let listener = handed.take_tcp_listener(place)?.ok_or(io::ErrorKind::NotFound)?;
    listens(&listener)?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(io::Error::other(format!("{address} can be reached from elsewhere")));
    }
    listener.set_nonblocking(true)?;
    Ok(AdminListener::Tcp(listener))
}

/// The address is the unit's choice; the gateway's own checks hold for it as for a bound one.
fn gateway(handed: &mut ListenFd, place: usize) -> io::Result<OwnedFd> {
    let listener = handed.take_tcp_listener(place)?.ok_or(io::ErrorKind::NotFound)?;
    listens(&listener)?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

fn parcel(handed: &mut ListenFd, place: usize) -> io::Result<OwnedFd> {
    let family = i32::from(AddressFamily::UNIX.as_raw());
    let kind = SocketType::SEQPACKET.as_raw().cast_signed();
    handed.take_custom(place, family, kind, "parcel")?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn listens(socket: impl AsFd) -> io::Result<()> {
    if socket_acceptconn(socket)? { Ok(()) } else { Err(io::Error::other("it does not listen")) }
}
