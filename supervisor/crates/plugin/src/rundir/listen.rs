//! Sockets that we bind for a plugin, in its private directory as it is outside, where the plugin sees another one.
//!
//! | name | what |
//! |---|---|
//! | `l` | the listening socket that it is handed: there is no path that it could swap, and nobody else can have bound it. It tells us the path, which it learns from the kernel, so that the handshake reads as it would for a socket of its own |
//! | `x` | its way to the supervisor's proxy; this one it is shown, at the same path |
//! | `k` | its way to its key-values; it is shown this one, too |

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, chmodat, chownat, openat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use talon_jail::Identity;

use super::PrivateDir;

/// Names that none of a plugin's own sockets has: those lie in directories of theirs.
const LISTENING: &str = "l";
const PROXY: &str = "x";
const STATE: &str = "k";

/// Connections that may wait to be accepted. One plugin makes, or is made, a handful at a time.
const BACKLOG: i32 = 128;

impl PrivateDir {
    /// Makes the socket for the plugin to accept on. Whoever holds the descriptor keeps it listening, so ours must be
    /// dropped once the plugin has its own: only then are connections refused when the plugin is gone.
    pub(crate) fn listen(&self) -> io::Result<OwnedFd> {
        let socket = self.bind(LISTENING, None)?;
        let place =
            openat(&self.fd, LISTENING, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        // It is made once for each directory, so there is no earlier one to keep.
        let _ = self.listening.set(place);
        Ok(socket)
    }

    /// The path that it was bound to.
    pub(crate) fn listening_path(&self) -> PathBuf {
        self.path.join(LISTENING)
    }

    /// The very socket that was bound, to connect to; `None` if there is none.
    pub(crate) fn listening(&self) -> Option<BorrowedFd<'_>> {
        self.listening.get().map(AsFd::as_fd)
    }

    /// Makes the socket for the supervisor's proxy to accept on, to which the plugin may connect.
    pub(crate) fn listen_for_proxy(&self, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        self.bind(PROXY, plugin)
    }

    /// The path that the plugin finds it at.
    pub(crate) fn proxy_path(&self) -> PathBuf {
        self.path.join(PROXY)
    }

    /// Makes the socket for whoever serves the plugin its key-values to accept on, to which the plugin may connect.
    pub(crate) fn listen_for_state(&self, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        self.bind(STATE, plugin)
    }

    /// The path that the plugin finds it at.
    pub(crate) fn state_path(&self) -> PathBuf {
        self.path.join(STATE)
    }

    /// A listening socket of ours, to which nobody else may connect but `plugin`.
    fn bind(&self, name: &str, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let path: &Path = &self.path.join(name);
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Before anybody can connect.
        if let Some(plugin) = plugin {
            chownat(&self.fd, name, None, Some(Gid::from_raw(plugin.gid)), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let mode = if plugin.is_some() { 0o660 } else { 0o600 };
        chmodat(&self.fd, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    }
}

/// The path by which a descriptor can be connected to.
pub(crate) fn magic_path(fd: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}
