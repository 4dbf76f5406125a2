//! How `talon-state` is run: jailed like a plugin, with its home directory and no other files of ours.

use std::path::PathBuf;
use std::time::Duration;

use talon_jail::{Limits, Mode};
use talon_plugin::service::{Home, ServiceSpec};
use talon_plugin_config::PluginName;
use talon_plugin_config::spec::{NetworkAccess, SandboxSettings};

use crate::service::{self, database_paths};

/// The first wait before a restart: short, since plugins wait meanwhile. It doubles with each early exit.
const BACKOFF_INITIAL: Duration = Duration::from_millis(100);

/// The service spec under `name`, with this `home`; if it uses a database server, it gets network access.
#[must_use]
pub fn service(
    name: PluginName,
    program: PathBuf,
    home: Home,
    mode: Mode,
    server: Option<&str>,
) -> ServiceSpec {
    let sandbox = SandboxSettings {
        mode,
        network: if server.is_some() { NetworkAccess::Full } else { NetworkAccess::None },
        limits: limits(),
        ..SandboxSettings::default()
    };
    let readable_paths = server.map(database_paths).unwrap_or_default();
    service::service_spec(name, program, home, sandbox, readable_paths, BACKOFF_INITIAL)
}

/// Its resource limits. A thousand plugin processes may have 32 connections each. It bounds their requests
/// itself, far below this memory. Its database may become as large as the disk, or as `state.max_bytes`
/// allows.
fn limits() -> Limits {
    Limits { nofile: 65_536, memory_bytes: 4 << 30, fsize_bytes: u64::MAX, ..Limits::default() }
}
