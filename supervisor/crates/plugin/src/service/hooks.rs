//! What the client of a service is notified of.

use std::os::fd::OwnedFd;
use std::time::Duration;

use talon_sanitize::Sanitized;

/// The client of a service. A task calls these methods one after the other; they must neither block nor
/// panic.
pub trait ServiceHooks: Send + Sync + 'static {
    /// The service runs. `control` is our end of a socket pair from `talon_control::pair`; the other end is
    /// its standard input. `pid` is its pid as we see it (0 if it has already exited), `uid` the uid it runs
    /// as. Called at every start.
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32);

    /// The service should stop. End of file on the control socket asks it to, so close that soon. Otherwise
    /// it gets SIGTERM after its grace period.
    fn on_stopping(&self) {}

    /// The service exited or could not be started: `how` says it in one bounded line. It is restarted after
    /// `again_in`; `None` if it was stopped.
    fn on_ended(&self, how: &Sanitized, again_in: Option<Duration>);
}
