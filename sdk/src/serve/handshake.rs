//! The plugin's side of the handshake, in go-plugin's dialect.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// The variable that shows a plugin that a host started it. Not a secret: it only helps people who run the
/// plugin by hand.
pub(crate) const COOKIE_KEY: &str = "TALON_PLUGIN_MAGIC_COOKIE";
/// The value of that variable.
pub(crate) const COOKIE_VALUE: &str = "d3a7c1f0-talon-plugin";
/// go-plugin's own protocol version, the line's first field.
const CORE_VERSION: u32 = 1;
/// The version of `opentalon.plugin.v1` in go-plugin's numbering.
pub(crate) const APP_VERSION: u32 = 1;
/// The versions the host speaks, separated by commas.
pub(crate) const VERSIONS_ENV: &str = "PLUGIN_PROTOCOL_VERSIONS";
/// Where the host wants the socket.
pub(crate) const SOCKET_DIR_ENV: &str = "PLUGIN_UNIX_SOCKET_DIR";
/// The number of a descriptor that is a listening socket; if set, none is created. 0, standard input, works
/// everywhere; other numbers need the system call `pidfd_getfd`.
pub(super) const FD_ENV: &str = "TALON_LISTEN_FD";

pub(super) fn started_by_a_host(env: impl Fn(&str) -> Option<OsString>) -> bool {
    env(COOKIE_KEY).is_some_and(|value| value == COOKIE_VALUE)
}

/// Prints on stderr when no version fits. The line is written all the same: the host compares the versions,
/// and its error can name both sides, which an exit without a line could not.
pub(super) fn compare_versions(offered: Option<OsString>) {
    let Some(offered) = offered else { return };
    let offered = offered.to_string_lossy();
    if !speaks_ours(&offered) {
        tracing::error!("the host speaks protocol versions {offered}, this plugin speaks {APP_VERSION}");
    }
}

fn speaks_ours(offered: &str) -> bool {
    offered.is_empty() || offered.split(',').any(|version| version.trim().parse() == Ok(APP_VERSION))
}

/// Writes the line. The SDK writes nothing else to stdout, and what tools print there later is only logged.
pub(super) fn announce(stdout: &mut impl Write, socket: &Path) -> io::Result<()> {
    // One write: a reader must never see half a line, and a println! elsewhere must not come between.
    let line = format!("{CORE_VERSION}|{APP_VERSION}|unix|{}|grpc\n", socket.display());
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SDK-9
    #[test]
    fn the_cookie_tells_a_host_from_a_person() {
        assert!(!started_by_a_host(|_| None));
        assert!(!started_by_a_host(|_| Some("other".into())));
        assert!(started_by_a_host(|name| (name == COOKIE_KEY).then(|| COOKIE_VALUE.into())));
    }

    // Promises: SDK-9
    #[test]
    fn the_line_is_go_plugins() {
        let mut out = Vec::new();
        announce(&mut out, Path::new("/run/p/x.sock")).expect("written");
        assert_eq!(out, b"1|1|unix|/run/p/x.sock|grpc\n");
    }

    #[test]
    fn our_version_is_found_in_a_list() {
        for fits in ["1", "2,1", " 1 ,3", "abc,1", ""] {
            assert!(speaks_ours(fits), "{fits:?}");
        }
        for misfit in ["2", "7,9", "abc", "11"] {
            assert!(!speaks_ours(misfit), "{misfit:?}");
        }
    }
}
