//! The oldest OpenTalon plugins (v0.0.1): their handshake line is OpenTalon's, but on their socket they speak
//! lengths and JSON instead of HTTP/2.
//!
//! Their handshake line does not identify them, but their answer does: they read the first four bytes of
//! HTTP/2 as the length of a message, more than a gigabyte, and hang up without an answer. A plugin that
//! crashes hangs up, too, but then it has exited.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use talon_plugin_client::connect::Target;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{Dialect, PluginSpec};
use talon_wire::BusyFlag;

/// The connection preface of HTTP/2 with an empty SETTINGS frame; a server answers with its own SETTINGS
/// immediately.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// The line in the plugin's log when one is detected.
pub(super) const FRAMED_DETECTED: &str = "it speaks the protocol of OpenTalon v0.0.1 and no gRPC (dialect opentalon-v0): starting it again \
    behind talon-framed-bridge; write that dialect into its entry to save the first try";

/// How often it has to hang up. A plugin that is dying does so at most once: its exit also closes its
/// listening socket, and further connections fail. 3, because the order in which it closes them is not
/// certain.
const TRIES: u32 = 3;

/// How long it may take to hang up. A peer that takes longer waits for more data, as an HTTP/2 server may.
const HANGS_UP_WITHIN: Duration = Duration::from_secs(1);

/// Plugins that turned out to speak this protocol: by name, the digest of that program. One entry for each
/// plugin.
#[derive(Debug, Default)]
pub(super) struct FramedPlugins(Mutex<HashMap<PluginName, String>>);

impl FramedPlugins {
    /// The digest of the program with which the plugin was detected.
    pub(super) fn digest(&self, plugin: &PluginName) -> Option<String> {
        self.0.lock().get(plugin).cloned()
    }

    /// Remembers the program, so that its next starts skip the detection.
    pub(super) fn remember(&self, plugin: &PluginName, digest: &str) {
        self.0.lock().insert(plugin.clone(), digest.to_owned());
    }

    /// Forgets the plugin, because it has another program now.
    pub(super) fn forget(&self, plugin: &PluginName) {
        self.0.lock().remove(plugin);
    }
}

/// The same plugin, started behind the bridge.
pub(super) fn behind_bridge(spec: &PluginSpec) -> PluginSpec {
    PluginSpec { dialect: Dialect::OpenTalonV0, ..spec.clone() }
}

/// Whether a plugin with this handshake may turn out to speak the oldest protocol.
pub(super) fn may_be_framed(spec: &PluginSpec, said: Dialect) -> bool {
    matches!(spec.dialect, Dialect::Auto | Dialect::OpenTalon) && said == Dialect::OpenTalon
}

/// Whether the listener hangs up on HTTP/2 every time, without an answer.
pub(super) async fn hangs_up_on_http2(target: &Target) -> bool {
    for _ in 0..TRIES {
        if !timeout(HANGS_UP_WITHIN, hangs_up_once(target)).await.unwrap_or(false) {
            return false;
        }
    }
    true
}

async fn hangs_up_once(target: &Target) -> bool {
    let Ok(mut stream) = target.connect(&BusyFlag::default()).await else { return false };
    // If it has hung up already, the read below shows that.
    let _ = stream.write_all(HTTP2_PREFACE).await;
    match stream.read(&mut [0]).await {
        Ok(read) => read == 0,
        // It closed the connection with unread data.
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[cfg(test)]
#[path = "framed_tests.rs"]
mod tests;
