//! How fake processes behave.

use std::time::Duration;

use talon_plugin_config::spec::Dialect;

/// How a process and its client behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FakeBehavior {
    /// Ends when it is asked to shut down.
    pub(crate) accepts_shutdown: bool,
    /// Ends on SIGINT and SIGTERM.
    pub(crate) heeds_signals: bool,
    /// Answers health checks.
    pub(crate) healthy: bool,
    /// Needs a permit of [`FakeLauncher::gate`](super::FakeLauncher::gate) for each answer.
    pub(crate) gated: bool,
    /// How long after its deadline it ends a call; `None`: never.
    pub(crate) ends_overdue_after: Option<Duration>,
    pub(crate) dialect: Dialect,
}

pub(crate) const WELL_BEHAVED: FakeBehavior = FakeBehavior {
    accepts_shutdown: true,
    heeds_signals: true,
    healthy: true,
    gated: false,
    ends_overdue_after: Some(Duration::ZERO),
    dialect: Dialect::GoPlugin,
};
