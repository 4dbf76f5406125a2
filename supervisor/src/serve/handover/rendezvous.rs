//! The rendezvous of two supervisors: a private socket in the runtime directory, for one connection.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Uid;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use tokio::net::UnixListener;
use tokio::time::timeout;

use super::wire::HandoverConnection;
use talon_listen::ShortPath;

/// The socket's name in the runtime directory.
const NAME: &str = "takeover.sock";
/// Accessible to our own user only.
const MODE: u32 = 0o600;
/// How long the successor may take to connect. It does so at once, so ten seconds mean a very busy machine.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Why the two did not connect.
#[derive(Debug, thiserror::Error)]
pub(super) enum RendezvousError {
    #[error("cannot {what} {NAME}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("no supervisor connected to {NAME} within {} s", CONNECT_WITHIN.as_secs())]
    NoClient,
    #[error("the other side of {NAME} is not who it should be (uid {uid}, pid {pid})")]
    UnexpectedPeer { uid: u32, pid: u32 },
}

/// The listening socket; its file is removed on drop.
#[derive(Debug)]
pub(super) struct Rendezvous {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        // If this fails, the next supervisor, which then holds the directory's lock, removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

impl Rendezvous {
    /// Binds the socket, in a runtime directory whose lock we hold.
    pub(super) fn bind(runtime_dir: &Path) -> Result<Self, RendezvousError> {
        let path = runtime_dir.join(NAME);
        // A leftover of a supervisor that was killed.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(&path).map_err(failed("remove the dead"))?;
        }
        let short = ShortPath::of_file(&path).map_err(failed("find the place of"))?;
        let address = SocketAddrUnix::new(short.as_path()).map_err(errno("name"))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(errno("make"))?;
        bind(&socket, &address).map_err(errno("bind"))?;
        // Every connect is refused until `listen`, so that clients cannot connect before the final mode is
        // set.
        let made =
            fs::set_permissions(&path, fs::Permissions::from_mode(MODE)).map_err(failed("set the mode of"));
        let listening = made.and_then(|()| {
            listen(&socket, 1).map_err(errno("listen on"))?;
            UnixListener::from_std(net::UnixListener::from(socket)).map_err(failed("listen on"))
        });
        match listening {
            Ok(listener) => Ok(Self { listener, path }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// The socket's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for this process and rejects all others.
    pub(super) async fn wait_for(self, pid: u32) -> Result<HandoverConnection, RendezvousError> {
        let accepted =
            timeout(CONNECT_WITHIN, self.listener.accept()).await.map_err(|_| RendezvousError::NoClient)?;
        let (stream, _) = accepted.map_err(failed("accept on"))?;
        let socket = OwnedFd::from(stream.into_std().map_err(failed("accept on"))?);
        let peer = peer(&socket)?;
        if peer.1 != pid {
            return Err(RendezvousError::UnexpectedPeer { uid: peer.0, pid: peer.1 });
        }
        HandoverConnection::new(socket).map_err(failed("use"))
    }
}

/// Connects to another supervisor's socket, and returns its pid. Blocks for as long as a connection to a
/// process of our own user may take.
pub(super) fn connect_to_rendezvous(runtime_dir: &Path) -> Result<(OwnedFd, u32), RendezvousError> {
    let short = ShortPath::of_file(&runtime_dir.join(NAME)).map_err(failed("find"))?;
    let address = SocketAddrUnix::new(short.as_path()).map_err(errno("name"))?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(errno("make"))?;
    connect(&socket, &address).map_err(errno("connect to"))?;
    let (_, pid) = peer(&socket)?;
    Ok((socket, pid))
}

/// The peer's uid, which must be ours, and its pid.
fn peer(socket: &OwnedFd) -> Result<(u32, u32), RendezvousError> {
    let peer = socket_peercred(socket).map_err(errno("ask who is at the other end of"))?;
    let (uid, pid) = (peer.uid.as_raw(), peer.pid.as_raw_nonzero().get().cast_unsigned());
    if uid == Uid::effective().as_raw() {
        Ok((uid, pid))
    } else {
        Err(RendezvousError::UnexpectedPeer { uid, pid })
    }
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> RendezvousError {
    move |source| RendezvousError::Io { what, source }
}

fn errno(what: &'static str) -> impl Fn(rustix::io::Errno) -> RendezvousError {
    move |source| RendezvousError::Io { what, source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HANDOVER-35
    #[tokio::test]
    async fn the_one_that_is_waited_for_comes_in_and_the_file_goes() {
        let dir = tempfile::tempdir().unwrap();
        let meeting = Rendezvous::bind(dir.path()).unwrap();
        let path = meeting.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        let (_socket, pid) = connect_to_rendezvous(dir.path()).unwrap();
        assert_eq!(pid, std::process::id());
        meeting.wait_for(std::process::id()).await.unwrap();
        assert!(!path.exists());
    }

    // Promises: HANDOVER-35
    #[tokio::test]
    async fn another_process_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let meeting = Rendezvous::bind(dir.path()).unwrap();
        let _socket = connect_to_rendezvous(dir.path()).unwrap();
        let refused = meeting.wait_for(std::process::id() + 1).await.unwrap_err();
        assert!(matches!(refused, RendezvousError::UnexpectedPeer { .. }));
    }

    // Promises: HANDOVER-35
    #[tokio::test(start_paused = true)]
    async fn nobody_is_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let meeting = Rendezvous::bind(dir.path()).unwrap();
        assert!(matches!(meeting.wait_for(1).await, Err(RendezvousError::NoClient)));
    }

    #[tokio::test]
    async fn a_dead_one_is_replaced_and_a_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        drop(net::UnixListener::bind(dir.path().join(NAME)).unwrap());
        drop(Rendezvous::bind(dir.path()).unwrap());
        fs::write(dir.path().join(NAME), "mine").unwrap();
        assert!(Rendezvous::bind(dir.path()).is_err());
        assert_eq!(fs::read_to_string(dir.path().join(NAME)).unwrap(), "mine");
    }
}
