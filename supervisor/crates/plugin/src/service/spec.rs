//! The specification of a service, and the hooks of its client.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::SandboxSettings;
use talon_sanitize::Sanitized;

use super::Home;

/// One service.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// Its name ([`PluginName::reserved`]), used in log lines.
    pub name: PluginName,
    /// The program: a native one that belongs to root or to us, and that no other user can change. It is opened at each
    /// start and executed through that descriptor.
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
    /// The wait before a restart, were it the first within five minutes, which is at once; doubles with each further exit,
    /// with jitter.
    pub backoff_initial: Duration,
    /// The longest such wait.
    pub backoff_max: Duration,
}

/// The client of a service. A task calls these methods one after the other; they must neither block nor panic.
pub trait ServiceHooks: Send + Sync + 'static {
    /// The service runs. `control` is our end of a socket pair from `talon_control::pair`; the other end is its
    /// standard input. `pid` is its pid as we see it (0 if it has already exited), `uid` the uid it runs as. Called at
    /// every start.
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32);

    /// The service should stop. End of file on the control socket asks it to, so close that soon. Otherwise it gets
    /// SIGTERM after its grace period.
    fn on_stopping(&self) {}

    /// The service exited or could not be started: `how` says it in one bounded line. It is restarted after `again_in`;
    /// `None` if it was stopped.
    fn on_ended(&self, how: &Sanitized, again_in: Option<Duration>);
}
