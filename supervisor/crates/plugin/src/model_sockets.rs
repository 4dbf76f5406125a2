//! The plugins' access to completions of language models: each process of a plugin that is granted some gets its
//! own socket, which another component serves.
//!
//! ```text
//! plugin ── TALON_MODEL_SOCKET ──► q ──► the provider: ModelSockets::attach(plugin, uid, socket)
//! ```
//!
//! As for key-values, the socket and the uid say who asks.

use std::fmt;
use std::os::fd::OwnedFd;

use talon_plugin_config::name::PluginName;

use crate::state_sockets::AttachedSocket;

/// Provides plugins with completions.
pub trait ModelSockets: fmt::Debug + Send + Sync + 'static {
    /// Takes a non-blocking listening socket: a client that connects there with the uid `peer` may ask the
    /// models that `plugin` is granted, until the returned value is dropped. Called once for each process,
    /// before it is started; never blocks.
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn AttachedSocket>;
}
