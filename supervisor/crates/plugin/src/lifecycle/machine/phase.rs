//! The states of the machine with their data.

use std::time::Duration;

use crate::lifecycle::MachineTime;
use crate::lifecycle::health_checks::HealthChecks;

/// The state and its own data.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Discovered,
    Starting,
    Handshaking,
    /// Ready, or Unhealthy when checks failed.
    Up(HealthChecks),
    Draining {
        step: DrainStep,
        /// When the step times out.
        until: MachineTime,
        grace: Duration,
        next: AfterDrain,
    },
    Stopped,
    Backoff {
        until: MachineTime,
    },
    Failed,
}

/// The steps of draining, each bounded in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainStep {
    /// Calls in flight may finish.
    Calls,
    /// It was asked to shut down; SIGTERM follows.
    ShutdownRequested,
    /// It got SIGTERM; SIGKILL follows.
    Terminated,
    /// It exited or got SIGKILL; its remaining processes are ending.
    Clearing,
}

/// What follows once nothing of the process is left.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AfterDrain {
    Stop,
    Launch,
    Backoff(Duration),
    Fail,
}
