//! What a service is asked to be, and who has the other end of its control socket.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use talon_sanitize::Sanitized;

use super::Home;
use crate::name::PluginName;
use crate::spec::SandboxSettings;

/// One service.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// Its name ([`PluginName::own`]), by which its lines are logged.
    pub name: PluginName,
    /// The program: a native one that belongs to root or to us and that nobody else can change. It is opened at each
    /// start, and runs from what was opened.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<String>,
    /// Its home, which it finds at the same path and may write to, and the uid that it runs with.
    pub home: Home,
    /// Its jail. There is no proxy for services: with `NetworkAccess::Proxy` it has no network.
    pub sandbox: SandboxSettings,
    /// Files and directories of the host's that it may read; a service without one of them does not start.
    pub show: Vec<PathBuf>,
    /// How long it may take to end once its control socket has, and then again once it got SIGTERM.
    pub grace_period: Duration,
    /// The wait before it is started again; doubles with each end within five minutes, with jitter.
    pub backoff_initial: Duration,
    /// The longest such wait.
    pub backoff_max: Duration,
}

/// Talks to a service. Its methods are called one after the other, by a task: they must neither block nor panic.
pub trait Link: Send + Sync + 'static {
    /// It runs. `control` is our end of a socket of `talon_control::pair`, whose other end is its standard input; `pid` is
    /// its number as we see it (0 if it has ended already), `uid` who it runs as. Called at every start.
    fn started(&self, control: OwnedFd, pid: u32, uid: u32);

    /// It is to end. The polite request is the end of file of the control socket, so let go of it soon. Without that it
    /// is sent SIGTERM when its grace period is over.
    fn stopping(&self) {}

    /// It ended, or could not be started: `how`, in one bounded line. It is tried again after `again_in`; `None` if it
    /// is not, because it was stopped.
    fn ended(&self, how: &Sanitized, again_in: Option<Duration>);
}
