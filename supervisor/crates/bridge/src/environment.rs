//! The environment of the translated program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// Names that are for the bridge: its inherited socket, its limit of a message, its log filter, and what a
/// service manager gave an ancestor.
const BRIDGE_VARIABLES: [&str; 5] =
    ["TALON_LISTEN_FD", "OPENTALON_GRPC_MAX_MSG_BYTES", "TALON_LOG", "NOTIFY_SOCKET", "LISTEN_FDS"];
/// The handshake between a host and a go-plugin program, which would mislead the program.
const BRIDGE_PREFIXES: [&str; 2] = ["PLUGIN_", "TALON_PLUGIN_"];

/// The configured name of the plugin.
const NAME_VARIABLE: &str = "TALON_PLUGIN_NAME";

/// The plugin's name in the configuration. `None` where no supervisor started the bridge.
#[must_use]
pub fn plugin_name() -> Option<String> {
    std::env::var(NAME_VARIABLE).ok().filter(|name| !name.is_empty())
}

/// The operator's variables, and those that say where the program may write and connect to.
pub fn program_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_for_program(name))
}

fn is_for_program(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !BRIDGE_VARIABLES.iter().any(|ours| name == ours.as_bytes())
        && !BRIDGE_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_stays_with_the_bridge() {
        for name in [
            "PLUGIN_PROTOCOL_VERSIONS",
            "PLUGIN_MIN_PORT",
            "TALON_PLUGIN_MAGIC_COOKIE",
            NAME_VARIABLE,
            "TALON_LISTEN_FD",
            "TALON_LOG",
        ] {
            assert!(!is_for_program(OsStr::new(name)), "{name}");
        }
        for name in
            ["HOME", "TMPDIR", "PATH", "TALON_PROXY_SOCKET", "TALON_STATE_SOCKET", "API_KEY", "MY_PLUGIN_X"]
        {
            assert!(is_for_program(OsStr::new(name)), "{name}");
        }
    }
}
