//! What the supervisor makes for a plugin: sockets that it binds, and a file, in the private directory as the supervisor sees it. The
//! plugin sees another directory at the same path.
//!
//! | name | purpose |
//! |---|---|
//! | `l` | the listening socket that the plugin inherits. The plugin cannot swap its path, and no other process can have bound it. The kernel tells the plugin the path, so that its handshake reads as for a socket of its own |
//! | `x` | the connection to the supervisor's proxy; the plugin sees it at the same path |
//! | `c` | certificates that the plugin trusts; it sees the file, too |
//! | `k` | the connection to its key-value store; the plugin sees it, too |
//! | `q` | the connection for completions of language models, where it is granted some; the plugin sees it, too |

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, chmodat, chownat, fchmod, fchown, openat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use talon_jail::Identity;
use talon_plugin_client::socket_dir::LISTENING;

use super::PrivateDir;

/// Names that differ from those of the plugin's own sockets, which are in subdirectories.
const PROXY: &str = "x";
const STATE: &str = "k";
const MODEL: &str = "q";
const CERTIFICATES: &str = "c";

/// Connections that may wait to be accepted. A plugin makes, or gets, only a few at a time.
const BACKLOG: i32 = 128;

impl PrivateDir {
    /// Creates the socket on which the plugin accepts connections. A socket listens as long as any process
    /// holds its descriptor. So ours must be dropped once the plugin has inherited it; only then are
    /// connections refused after the plugin is gone.
    pub(crate) fn listen(&self) -> io::Result<OwnedFd> {
        let socket = self.bind(LISTENING, None)?;
        self.sockets.remember_listening()?;
        Ok(socket)
    }

    /// Creates the socket for the supervisor's proxy, to which the plugin may connect.
    pub(crate) fn listen_for_proxy(&self, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        self.bind(PROXY, plugin)
    }

    /// The path where the plugin finds it.
    pub(crate) fn proxy_path(&self) -> PathBuf {
        self.path().join(PROXY)
    }

    /// Creates the socket for the plugin's key-value store, to which the plugin may connect.
    pub(crate) fn listen_for_state(&self, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        self.bind(STATE, plugin)
    }

    /// The path where the plugin finds it.
    pub(crate) fn state_path(&self) -> PathBuf {
        self.path().join(STATE)
    }

    /// Creates the socket for completions of language models, to which the plugin may connect.
    pub(crate) fn listen_for_models(&self, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        self.bind(MODEL, plugin)
    }

    /// The path where the plugin finds it.
    pub(crate) fn model_path(&self) -> PathBuf {
        self.path().join(MODEL)
    }

    /// Writes the certificates that the plugin trusts, where only it and we may read them.
    pub(crate) fn write_certificates(&self, text: &str, plugin: Option<Identity>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self.sockets.fd(), CERTIFICATES, flags, Mode::from_raw_mode(0o600))?;
        if let Some(plugin) = plugin {
            fchown(&file, None, Some(Gid::from_raw(plugin.gid)))?;
            fchmod(&file, Mode::from_raw_mode(0o640))?;
        }
        File::from(file).write_all(text.as_bytes())
    }

    /// The path where the plugin finds them.
    pub(crate) fn certificates_path(&self) -> PathBuf {
        self.path().join(CERTIFICATES)
    }

    /// Binds a listening socket to which only `plugin` may connect, or only our uid if it is `None`.
    fn bind(&self, name: &str, plugin: Option<Identity>) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let path: &Path = &self.path().join(name);
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Permissions are set before `listen`, so that no other process can connect earlier.
        if let Some(plugin) = plugin {
            chownat(
                self.sockets.fd(),
                name,
                None,
                Some(Gid::from_raw(plugin.gid)),
                AtFlags::SYMLINK_NOFOLLOW,
            )?;
        }
        let mode = if plugin.is_some() { 0o660 } else { 0o600 };
        chmodat(self.sockets.fd(), name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    }
}
