//! The lifecycle of one instance: a pure state [`machine`] and its counters.
//!
//! Nothing in here does IO, reads a clock or generates a random number; the driver provides all three.

pub(crate) mod backoff;
pub(crate) mod event;
pub(crate) mod health_checks;
pub(crate) mod machine;
pub(crate) mod reason;
pub(crate) mod restart_counter;

use std::fmt;
use std::time::Duration;

/// A point in time for the machine: the time since its driver started.
pub(crate) type MachineTime = Duration;

/// The state that the operator wants; independent of the observed state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Desired {
    /// It should run, and be started again when it dies.
    Up,
    /// It should not run.
    Down,
}

impl Desired {
    /// The name as the host API shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The observed state of an instance, or of a plugin as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Registered, but not started yet.
    Discovered,
    /// Waiting for its turn to start, or being spawned.
    Starting,
    /// The process runs; handshake, Init and Capabilities are under way.
    Handshaking,
    /// The handshake is valid, health is SERVING and Capabilities were read: it takes calls.
    Ready,
    /// It failed its last health checks, but not too many yet; it takes no new calls.
    Unhealthy,
    /// No new calls; calls in flight may finish, then the process is ended.
    Draining,
    /// It does not run, as desired.
    Stopped,
    /// It died and waits to be started again.
    Backoff,
    /// It died too often, or may not be restarted: it stays down until an operator acts.
    Failed,
    /// It may not be started (a wrong digest, a missing protection): like `Failed`, but a retry does not help
    /// until something is changed.
    Refused,
}

impl State {
    /// The name as the host API shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Starting => "starting",
            Self::Handshaking => "handshaking",
            Self::Ready => "ready",
            Self::Unhealthy => "unhealthy",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
