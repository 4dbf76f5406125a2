//! What goes into the machine and what comes out of it.

use std::time::Duration;

use talon_sanitize::Sanitized;

use super::Moment;
use super::backoff::Jitter;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The operator wants it up. Ends `Failed` and clears the tally.
    Start,
    /// The operator wants it down; `grace` shortens the configured grace period.
    Stop { grace: Option<Duration> },
    /// The operator wants a new process.
    Restart,
    /// The driver heard something about the process of a generation.
    Report { generation: u64, report: Report },
    /// Time has passed; sent at [`Machine::wake_at`](super::machine::Machine::wake_at), harmless at any other time.
    Tick,
}

/// What the driver hears about one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The process runs.
    ProcessStarted,
    /// Handshake, Init and Capabilities went well.
    Launched,
    /// It did not become ready, and nothing is left of it. `refused`: trying again would not help.
    LaunchFailed { cause: Sanitized, refused: bool },
    /// The program ended; what it started may still be there.
    Exited { how: Sanitized },
    /// Nothing of it is left.
    Gone,
    /// No call is in flight any more.
    CallsDone,
    /// Whether the plugin agreed to end itself.
    ExitAnswered { accepted: bool },
    /// A health check ended.
    Checked(Verdict),
    /// It did not end a call within the time that it has for that after the call's deadline. `which`: "call X (action
    /// Y)"; `patience`: how long it had.
    IgnoredDeadline { which: Sanitized, patience: Duration },
}

/// How a health check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It serves.
    Serving,
    /// It answered that it does not serve.
    NotServing,
    /// It did not answer in time, or broke the connection.
    NoAnswer {
        /// Why.
        cause: Sanitized,
        /// The latest deadline among the calls in flight, if there are any.
        busy_until: Option<Moment>,
        /// Whether a call was answered since the last check: it is alive, merely slow.
        answered: bool,
    },
}

/// What the driver is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a process; report `ProcessStarted`, then `Launched` or `LaunchFailed`.
    Launch { generation: u64 },
    /// Give up the launch and kill what it started; report `LaunchFailed` or `Gone` when nothing of it is left.
    CancelLaunch,
    /// Check its health; report `Checked`.
    CheckHealth,
    /// Report `CallsDone` once no call is in flight.
    AwaitCalls,
    /// End the calls in flight with an error, now.
    FailCalls(CallsEnd),
    /// Ask the plugin to end itself; report `ExitAnswered`.
    AskToExit,
    /// SIGTERM.
    Terminate,
    /// SIGKILL for it and all it started; report `Gone`. May be repeated.
    Kill,
}

/// With what calls in flight end when their process goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallsEnd {
    /// The process died.
    Died { how: Sanitized, restarting: bool },
    /// The process is stopped or replaced, and the grace period is over.
    Stopped,
}

/// What comes with every event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    /// When it happened; never earlier than that of the event before.
    pub(crate) now: Moment,
    /// A number drawn for this event.
    pub(crate) jitter: Jitter,
}
