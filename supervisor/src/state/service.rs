//! How `talon-state` is run: jailed like a plugin, with its home and nothing else of ours.

use std::path::PathBuf;
use std::time::Duration;

use talon_jail::{Limits, Mode};
use talon_plugin::PluginName;
use talon_plugin::entry::NetworkAccess;
use talon_plugin::service::{Home, ServiceSpec};
use talon_plugin::spec::SandboxSettings;

use crate::service::of_server;

/// The wait before it is started again: short, since plugins wait meanwhile; doubled with each death soon after.
const BACKOFF_INITIAL: Duration = Duration::from_millis(100);
/// The longest such wait. A database that cannot be opened does not get better by more attempts, and an operator who
/// mended it should not have to wait longer.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long it may take to finish what it has begun: it gives itself 5 s for that.
const GRACE: Duration = Duration::from_secs(8);

/// Under `name`, in `home`; with a server, which is on the network.
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
    ServiceSpec {
        name,
        program,
        args: Vec::new(),
        home,
        sandbox,
        show: server.map(of_server).unwrap_or_default(),
        grace_period: GRACE,
        backoff_initial: BACKOFF_INITIAL,
        backoff_max: BACKOFF_MAX,
    }
}

/// What it may use. A thousand plugin processes may have 32 connections each to it. What those have under way it bounds
/// itself, far below this memory. Its database may become as large as the disk, or as `state.max_bytes` says.
fn limits() -> Limits {
    Limits { nofile: 65_536, memory_bytes: 4 << 30, fsize_bytes: u64::MAX, ..Limits::default() }
}
