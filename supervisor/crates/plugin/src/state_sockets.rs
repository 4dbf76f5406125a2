//! The plugins' access to their key-value stores: each process gets its own socket, which another component
//! serves.
//!
//! ```text
//! plugin ── TALON_STATE_SOCKET ──► k ──► the provider: StateSockets::attach(plugin, uid, socket)
//! ```
//!
//! A process is identified by the socket in its private directory and by its uid; it cannot claim another
//! name. So a plugin reaches only its own key-values, in any language.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use talon_plugin_config::name::PluginName;

/// Provides plugins with their key-value stores.
pub trait StateSockets: fmt::Debug + Send + Sync + 'static {
    /// Whether this plugin has a key-value store. One that keeps the others' has none.
    fn serves(&self, _plugin: &PluginName) -> bool {
        true
    }

    /// Takes a non-blocking listening socket: a client that connects there with the uid `peer` has access to
    /// the key-values of `plugin`, until the returned value is dropped. Called once for each process, before
    /// it is started; never blocks.
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn AttachedSocket>;
}

/// A socket that is served. Dropping it stops that and closes its connections; never blocks.
pub trait AttachedSocket: fmt::Debug + Send + Sync {
    /// A duplicate of the listening socket, for another supervisor to attach. This one keeps serving.
    ///
    /// # Errors
    /// When there are too many open files.
    fn socket(&self) -> io::Result<OwnedFd>;
}
