//! Descriptors that came with a control message: each is checked before it is served.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;

use rustix::net::{AddressFamily, SocketType, sockopt};
use tokio::net::{UnixListener, UnixStream};

/// Why an inherited descriptor cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum InheritedFdError {
    /// There is no descriptor.
    #[error("no descriptor came with it")]
    Missing,
    /// It is a file, or a socket of another kind.
    #[error("its descriptor is no unix stream socket")]
    NotAStreamSocket,
    /// It is not a listening socket.
    #[error("its socket does not listen")]
    NotListening,
    /// It is not connected.
    #[error("its socket is not connected")]
    NotConnected,
    /// A system call failed.
    #[error("its socket cannot be used: {0}")]
    Failed(#[from] io::Error),
}

/// A listening socket. Must be called within a runtime.
///
/// # Errors
/// [`InheritedFdError`]
pub fn listening(descriptor: Option<OwnedFd>) -> Result<UnixListener, InheritedFdError> {
    let (socket, listens) = stream_socket(descriptor)?;
    if !listens {
        return Err(InheritedFdError::NotListening);
    }
    let listener = net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(UnixListener::from_std(listener)?)
}

/// A connected socket. Must be called within a runtime.
///
/// # Errors
/// [`InheritedFdError`]
pub fn connected(descriptor: Option<OwnedFd>) -> Result<UnixStream, InheritedFdError> {
    let (socket, listens) = stream_socket(descriptor)?;
    let stream = net::UnixStream::from(socket);
    if listens || stream.peer_addr().is_err() {
        return Err(InheritedFdError::NotConnected);
    }
    stream.set_nonblocking(true)?;
    Ok(UnixStream::from_std(stream)?)
}

fn stream_socket(descriptor: Option<OwnedFd>) -> Result<(OwnedFd, bool), InheritedFdError> {
    let descriptor = descriptor.ok_or(InheritedFdError::Missing)?;
    let is = |descriptor: &OwnedFd| -> rustix::io::Result<bool> {
        Ok(sockopt::socket_domain(descriptor)? == AddressFamily::UNIX
            && sockopt::socket_type(descriptor)? == SocketType::STREAM)
    };
    if !is(&descriptor).unwrap_or(false) {
        return Err(InheritedFdError::NotAStreamSocket);
    }
    let listens = sockopt::socket_acceptconn(&descriptor).map_err(io::Error::from)?;
    Ok((descriptor, listens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_fits_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let listener = || net::UnixListener::bind(directory.path().join(ulid::Ulid::generate().to_string()));
        let pair = || OwnedFd::from(net::UnixStream::pair().unwrap().0);
        let alone = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        assert!(listening(Some(listener().unwrap().into())).is_ok());
        let (kept, handed) = net::UnixStream::pair().unwrap();
        assert!(connected(Some(handed.into())).is_ok());
        drop(kept);
        assert!(matches!(listening(None), Err(InheritedFdError::Missing)));
        assert!(matches!(listening(Some(pair())), Err(InheritedFdError::NotListening)));
        assert!(matches!(connected(Some(listener().unwrap().into())), Err(InheritedFdError::NotConnected)));
        assert!(matches!(connected(Some(alone)), Err(InheritedFdError::NotConnected)));
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        assert!(matches!(listening(Some(file())), Err(InheritedFdError::NotAStreamSocket)));
        assert!(matches!(connected(Some(file())), Err(InheritedFdError::NotAStreamSocket)));
    }
}
