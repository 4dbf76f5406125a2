//! The specification of a service: below both the launcher, which starts services, and the task that keeps
//! them running.

mod home;

use std::path::PathBuf;
use std::time::Duration;

use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::SandboxSettings;

pub use self::home::Home;

/// One service.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// Its name ([`PluginName::reserved`]), used in log lines.
    pub name: PluginName,
    /// The program: a native one that belongs to root or to us, and that no other user can change. It is
    /// opened at each start and executed through that descriptor.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<String>,
    /// Its home, which it sees at the same path and may write to, and its uid.
    pub home: Home,
    /// Its jail. Services have no proxy: with `NetworkAccess::Proxy` a service has no network.
    pub sandbox: SandboxSettings,
    /// Host files and directories that it may read. If one of them is missing, the service does not start.
    pub readable_paths: Vec<PathBuf>,
    /// How long it may take to exit after its control socket was closed, and again after SIGTERM.
    pub grace_period: Duration,
    /// The wait before a restart, were it the first within five minutes, which is at once; doubles with each
    /// further exit, with jitter.
    pub backoff_initial: Duration,
    /// The longest such wait.
    pub backoff_max: Duration,
}
