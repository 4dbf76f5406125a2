//! The oldest OpenTalon plugins, those of v0.0.1: their handshake line is OpenTalon's, and on their socket they speak lengths
//! and JSON instead of HTTP/2.
//!
//! They cannot be told by their line, so they are told by how they answer: to them the first four bytes of HTTP/2 are the length
//! of a message, a gigabyte and more, and they hang up without a word. A plugin that crashes hangs up, too, but then it is gone.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::connect::{Busy, Target};
use crate::name::PluginName;
use crate::spec::{Dialect, PluginSpec};

/// What every client of HTTP/2 says first, and an empty SETTINGS frame, to which a server answers with its own at once.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// What the plugin's log says of it.
pub(super) const FOUND: &str = "it speaks the protocol of OpenTalon v0.0.1 and no gRPC (dialect opentalon-v0): starting it again \
    behind talon-framed-bridge; write that dialect into its entry to save the first try";

/// How often it has to hang up. One that is dying does it once at most: what closes its connections closes its socket, too, and
/// then nobody can connect any more. 3, because the order in which it closes them is not certain.
const TRIES: u32 = 3;

/// How long it may take to hang up. Who takes longer waits for more, as a server of HTTP/2 may.
const HANGS_UP_WITHIN: Duration = Duration::from_secs(1);

/// Plugins that turned out to speak so: by name, the digest of the program that did. One entry a plugin.
#[derive(Debug, Default)]
pub(super) struct Framed(Mutex<HashMap<PluginName, String>>);

impl Framed {
    /// The program that a plugin had when it turned out to speak so.
    pub(super) fn digest(&self, plugin: &PluginName) -> Option<String> {
        self.known().get(plugin).cloned()
    }

    /// Its next starts need not find out again.
    pub(super) fn remember(&self, plugin: &PluginName, digest: &str) {
        self.known().insert(plugin.clone(), digest.to_owned());
    }

    /// It has another program now.
    pub(super) fn forget(&self, plugin: &PluginName) {
        self.known().remove(plugin);
    }

    /// Nothing can panic while it is held.
    fn known(&self) -> MutexGuard<'_, HashMap<PluginName, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same plugin, behind the bridge.
pub(super) fn behind_bridge(spec: &PluginSpec) -> PluginSpec {
    PluginSpec { dialect: Dialect::OpenTalonV0, ..spec.clone() }
}

/// Whether a plugin with this handshake may turn out to be one of them.
pub(super) fn is_possible(spec: &PluginSpec, said: Dialect) -> bool {
    matches!(spec.dialect, Dialect::Auto | Dialect::OpenTalon) && said == Dialect::OpenTalon
}

/// Whether whoever listens hangs up on HTTP/2 each time without having said anything.
pub(super) async fn hangs_up(target: &Target) -> bool {
    for _ in 0..TRIES {
        if !timeout(HANGS_UP_WITHIN, hangs_up_once(target)).await.unwrap_or(false) {
            return false;
        }
    }
    true
}

async fn hangs_up_once(target: &Target) -> bool {
    let Ok(mut stream) = target.connect(&Busy::default()).await else { return false };
    // If it has hung up already, that shows when it is read from.
    let _ = stream.write_all(HELLO).await;
    match stream.read(&mut [0]).await {
        Ok(read) => read == 0,
        // It closed its end with our words unread.
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[cfg(test)]
#[path = "framed_tests.rs"]
mod tests;
