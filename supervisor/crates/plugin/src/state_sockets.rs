//! The plugins' way to their key-values: a socket of its own for each process, which somebody else serves.
//!
//! ```text
//! plugin ── TALON_STATE_SOCKET ──► k ──► whoever took it over: StateSockets::attach(plugin, uid, socket)
//! ```
//!
//! A process is known by the socket that it finds in its private directory, and by its uid: there is no name that it
//! could say. So a plugin reaches its own key-values and nobody else's, in whatever language it is written.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use crate::name::PluginName;

/// The environment variable that tells a plugin where its socket is.
pub const SOCKET_VARIABLE: &str = "TALON_STATE_SOCKET";

/// Serves plugins their key-values.
pub trait StateSockets: fmt::Debug + Send + Sync + 'static {
    /// Takes over a listening socket, which does not block: whoever connects there with the uid `peer` has `plugin`'s
    /// key-values, until what is returned is dropped. Called once for each process, before it is started; never blocks.
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn Attached>;
}

/// A socket that is served. Dropping it ends that, and the connections that were made through it; it never blocks.
pub trait Attached: fmt::Debug + Send + Sync {
    /// A duplicate of the listening socket, for another supervisor to attach. Who serves it now goes on.
    ///
    /// # Errors
    /// When there are too many open files.
    fn socket(&self) -> io::Result<OwnedFd>;
}
