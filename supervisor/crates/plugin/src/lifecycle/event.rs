//! The inputs and outputs of the machine.

use std::time::Duration;

use talon_sanitize::Sanitized;

use super::MachineTime;
use super::backoff::Jitter;

/// An input of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MachineEvent {
    /// The operator wants it up. Leaves `Failed` and clears the restart counter.
    Start,
    /// The operator wants it down; `grace` shortens the configured grace period.
    Stop { grace: Option<Duration> },
    /// The operator wants a new process.
    Restart,
    /// A report about the process of a generation.
    Report { generation: u64, report: ProcessReport },
    /// Time has passed; sent at [`Machine::wake_at`](super::machine::Machine::wake_at), harmless at any other
    /// time.
    Tick,
}

/// The driver's reports about one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessReport {
    /// The process runs.
    ProcessStarted,
    /// Handshake, Init and Capabilities succeeded.
    Launched,
    /// It did not become ready, and nothing of it is left.
    LaunchFailed { cause: Sanitized, kind: FailureKind },
    /// The program ended; processes that it started may still run.
    Exited { how: Sanitized },
    /// Nothing of it is left.
    Gone,
    /// No call is in flight any more.
    CallsDone,
    /// Whether the plugin agreed to end itself.
    ExitAnswered { accepted: bool },
    /// A health check ended.
    Checked(CheckResult),
    /// It did not end a call within the time it has after the call's deadline. `which`: "call X (action Y)";
    /// `patience`: how long it had.
    IgnoredDeadline { which: Sanitized, patience: Duration },
    /// It exceeded the budget of HTTP/2 frames of a connection. `how`: the budget.
    Flooded { how: Sanitized },
}

/// What a failed start says about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The next one may succeed: it counts as a death.
    Passing,
    /// The same start would fail again until something is changed.
    Permanent,
    /// What it depends on is away, as it says itself: it is retried for as long as that lasts.
    Outage,
    /// It flooded its connection: it counts as a death, of its own reason.
    FrameFlood,
}

/// The result of a health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// It serves.
    Serving,
    /// It answered that it does not serve.
    NotServing,
    /// It did not answer in time, or broke the connection.
    NoAnswer {
        /// Why.
        cause: Sanitized,
        /// The latest deadline of the calls in flight, if any has one.
        busy_until: Option<MachineTime>,
        /// Whether a call was answered since the last check: then it is alive, only slow.
        answered: bool,
    },
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MachineAction {
    /// Start a process; report `ProcessStarted`, then `Launched` or `LaunchFailed`.
    Launch { generation: u64 },
    /// Cancel the launch and kill what it started; report `LaunchFailed` or `Gone` when nothing of it is
    /// left.
    CancelLaunch,
    /// Check its health; report `Checked`.
    CheckHealth,
    /// Report `CallsDone` once no call is in flight.
    AwaitCalls,
    /// End the calls in flight with an error, now.
    FailCalls(CallFailure),
    /// Ask the plugin to end itself; report `ExitAnswered`.
    AskToExit,
    /// SIGTERM.
    Terminate,
    /// SIGKILL to it and everything it started; report `Gone`. May be repeated.
    Kill,
}

/// The error of calls in flight when their process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// The process died.
    Died { how: Sanitized, restarting: bool },
    /// The process is stopped or replaced, and the grace period is over.
    Stopped,
}

/// The data that comes with every event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    /// The time of the event; never earlier than that of the previous one.
    pub(crate) now: MachineTime,
    /// A random number for this event.
    pub(crate) jitter: Jitter,
}
