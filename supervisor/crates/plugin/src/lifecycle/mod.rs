//! How one instance lives and dies: a pure [`machine`] and the three small things it counts with.
//!
//! Nothing in here does IO, reads a clock or draws a random number; the driver brings all three.

pub(crate) mod backoff;
pub(crate) mod checks;
pub(crate) mod event;
pub(crate) mod machine;
pub(crate) mod reason;
pub(crate) mod tally;

use std::fmt;
use std::time::Duration;

/// A point in time as the machine knows it: how long ago its driver began.
pub(crate) type Moment = Duration;

/// What the operator wants of a plugin; kept apart from what is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Desired {
    /// It should run, and be started again when it dies.
    Up,
    /// It should not run.
    Down,
}

impl Desired {
    /// The word as the host API shows it.
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

/// What is observed of an instance, or of a plugin as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Registered; nobody has asked for it yet.
    Discovered,
    /// Waiting for its turn to start, or being spawned.
    Starting,
    /// The process runs; handshake, Init and Capabilities are under way.
    Handshaking,
    /// The handshake was valid, health is SERVING and Capabilities were read: it takes calls.
    Ready,
    /// It failed its last health checks, but not yet too many of them; it takes no new calls.
    Unhealthy,
    /// No new calls; calls in flight may finish, then the process goes.
    Draining,
    /// It does not run, as desired.
    Stopped,
    /// It died and waits to be started again.
    Backoff,
    /// It died too often, or may not be restarted: nothing happens until an operator says so.
    Failed,
    /// What was found may not be started (a wrong digest, a protection that is missing): like `Failed`, and
    /// trying again without changing something would not help.
    Refused,
}

impl State {
    /// The word as the host API shows it.
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
