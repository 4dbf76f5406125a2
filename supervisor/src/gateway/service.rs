//! How `talon-gateway` is run: jailed like a plugin, with the network, and no files but its empty home.

use std::path::PathBuf;
use std::time::Duration;

use talon_jail::{Limits, Mode};
use talon_plugin::service::{Home, ServiceSpec};
use talon_plugin_config::PluginName;
use talon_plugin_config::spec::{NetworkAccess, SandboxPorts, SandboxSettings};

use crate::config::Gateway;
use crate::service;

/// The first wait before a restart: short, since clients wait in the listener's queue. It doubles with each early exit.
const BACKOFF_INITIAL: Duration = Duration::from_millis(100);
/// Descriptors beside those of connections: its connections to host and agent, and what the runtime has open.
const OTHER_DESCRIPTORS: u64 = 64;
/// Memory of the process for each connection: 64 KiB that a client does not read, and three times as much for what is read and made. Beyond all
/// of it the kernel kills the process, and it is started again.
const MEMORY_BYTES_PER_CONNECTION: u64 = 256 << 10;
/// Memory of the process with few connections: the largest bodies are a part of it.
const MIN_MEMORY_BYTES: u64 = 1 << 30;
/// Threads: one for each processor, and those of the runtime.
const MAX_TASKS: u64 = 128;

/// The service spec under `name`, with this `home`. With `limits_ports` it may bind its own port, unless it inherits the socket, and
/// connects nowhere: what it needs is handed to it.
#[must_use]
pub fn service_spec(
    name: PluginName,
    program: PathBuf,
    home: Home,
    mode: Mode,
    gateway: &Gateway,
    limits_ports: bool,
) -> ServiceSpec {
    let ports = if limits_ports {
        SandboxPorts { connect: Some(Vec::new()), bind: Some(vec![gateway.address.port()]) }
    } else {
        SandboxPorts::default()
    };
    let limits = Limits {
        nofile: u64::from(gateway.limits.connections) + OTHER_DESCRIPTORS,
        memory_bytes: (u64::from(gateway.limits.connections) * MEMORY_BYTES_PER_CONNECTION)
            .max(MIN_MEMORY_BYTES),
        nproc: MAX_TASKS,
        ..Limits::default()
    };
    let sandbox = SandboxSettings {
        mode,
        // Clients come from wherever the listener is reached.
        network: NetworkAccess::Full,
        ports,
        limits,
        ..SandboxSettings::default()
    };
    service::service_spec(name, program, home, sandbox, Vec::new(), BACKOFF_INITIAL)
}
