//! Sockets that a service manager hands in, by their names (`FileDescriptorName=`).
//!
//! | name | what it is |
//! |---|---|
//! | `host` | what becomes `host.sock`: a listening unix stream socket, at any path. Its mode and owner are the unit's business |
//! | `admin` | a listener for metrics and health: a unix stream socket, or TCP on loopback. There may be several |
//! | `handover` | what the supervisor before this one left in the manager's store |
//!
//! What comes under another name is left alone, and said in the log.

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{AddressFamily, SocketType};
use talon_sanitize::Raw;

use super::notify::STORED;

/// The name of the socket that becomes `host.sock`.
const HOST: &str = "host";
/// The name of listeners for metrics and health.
const ADMIN: &str = "admin";

/// The most sockets that are looked at; of a unit that hands in more the rest is left alone, with a word in the log.
const MAX_SOCKETS: usize = 16;

/// What was handed in.
#[derive(Debug, Default)]
pub struct Sockets {
    /// What becomes `host.sock`. It does not block.
    pub host: Option<UnixListener>,
    /// Listeners for metrics and health.
    pub admin: Vec<AdminListener>,
    /// What the supervisor before this one left, the latest last: sealed parcels, not yet opened.
    pub handover: Vec<OwnedFd>,
    /// What was not taken, and why, for a log that was not there yet.
    pub(super) left: Vec<String>,
}

/// A listener for metrics and health. It does not block.
#[derive(Debug)]
pub enum AdminListener {
    /// A unix stream socket.
    Unix(UnixListener),
    /// TCP on a loopback address.
    Tcp(TcpListener),
}

/// Why what was handed in cannot be used. The text ends with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InheritedError {
    /// The socket named `host` is none that clients could connect to.
    #[error(
        "the socket that was handed in as \"host\" is no listening unix stream socket ({0}): use \
         ListenStream= with a path, and FileDescriptorName=host"
    )]
    Host(io::Error),
    /// There is more than one.
    #[error("more than one socket was handed in as \"host\": leave one ListenStream= in the socket unit")]
    Hosts,
    /// A socket named `admin` is none that may be served.
    #[error(
        "a socket that was handed in as \"admin\" is no listening unix stream socket and no TCP listener on loopback \
         ({0}): use ListenStream= with a path or with 127.0.0.1 or [::1], and FileDescriptorName=admin"
    )]
    Admin(io::Error),
}

impl Sockets {
    /// Takes what `$LISTEN_FDS` says was handed in; nothing where there is no such variable. The variables are removed, so
    /// this must run before there are threads, and once.
    ///
    /// # Errors
    /// [`InheritedError`] for a socket that has one of our names and is not what that name says.
    pub fn of_process() -> Result<Self, InheritedError> {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut handed = ListenFd::from_env();
        let names: Vec<&str> = names.split(':').chain(std::iter::repeat("")).take(handed.len()).collect();
        let mut sockets = Self::default();
        for (place, name) in names.into_iter().enumerate() {
            match name {
                HOST if place < MAX_SOCKETS && sockets.host.is_some() => return Err(InheritedError::Hosts),
                HOST if place < MAX_SOCKETS => {
                    sockets.host = Some(host(&mut handed, place).map_err(InheritedError::Host)?);
                }
                ADMIN if place < MAX_SOCKETS => {
                    sockets.admin.push(admin(&mut handed, place).map_err(InheritedError::Admin)?);
                }
                STORED if place < MAX_SOCKETS => match parcel(&mut handed, place) {
                    Ok(parcel) => sockets.handover.push(parcel),
                    Err(error) => sockets.left.push(format!("what the store kept is no parcel: {error}")),
                },
                _ => {
                    let name = Raw::from(name).line();
                    sockets.left.push(format!("descriptor {place}, named \"{name}\": no such name is known"));
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
    // One that is of the other kind stays where it is.
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

fn parcel(handed: &mut ListenFd, place: usize) -> io::Result<OwnedFd> {
    let family = i32::from(AddressFamily::UNIX.as_raw());
    let kind = SocketType::SEQPACKET.as_raw().cast_signed();
    handed.take_custom(place, family, kind, "parcel")?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn listens(socket: impl AsFd) -> io::Result<()> {
    if socket_acceptconn(socket)? { Ok(()) } else { Err(io::Error::other("it does not listen")) }
}
