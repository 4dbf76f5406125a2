//! The server's environment: ours, without the variables of our own handshake.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Names that belong to the handshake between the supervisor and the bridge.
const BRIDGE_VARIABLES: [&str; 4] =
    ["TALON_LISTEN_FD", "OPENTALON_GRPC_MAX_MSG_BYTES", "NOTIFY_SOCKET", "LISTEN_FDS"];
const BRIDGE_PREFIXES: [&str; 2] = ["PLUGIN_", "TALON_PLUGIN_"];

/// The operator's variables, and those that say where the server may write and connect to.
pub(crate) fn server_environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_for_server(name)).collect()
}

fn is_for_server(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !BRIDGE_VARIABLES.iter().any(|ours| name == ours.as_bytes())
        && !BRIDGE_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_stays_with_the_bridge() {
        for name in
            ["PLUGIN_PROTOCOL_VERSIONS", "TALON_PLUGIN_MAGIC_COOKIE", "TALON_PLUGIN_NAME", "TALON_LISTEN_FD"]
        {
            assert!(!is_for_server(OsStr::new(name)), "{name}");
        }
        for name in
            ["HOME", "TMPDIR", "PATH", "TALON_PROXY_SOCKET", "TALON_STATE_SOCKET", "API_KEY", "MY_PLUGIN_X"]
        {
            assert!(is_for_server(OsStr::new(name)), "{name}");
        }
    }
}
