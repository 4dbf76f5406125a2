//! What causes a reload.

/// What causes a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReloadTrigger {
    /// A client's request, such as `talon reload`.
    Request,
    /// SIGHUP.
    Signal,
    /// The config file was written.
    FileChange,
    /// A client's change of the overlay.
    Overlay,
}

impl ReloadTrigger {
    /// Its entry in the audit log.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Signal => "SIGHUP",
            Self::FileChange => "the config file changed",
            Self::Overlay => "the overlay was changed",
        }
    }

    /// Whether an operator wants it now. Then the agent's settings are sent even if they did not change, so that it
    /// forgets which keys were refused.
    pub(super) fn is_by_operator(self) -> bool {
        self != Self::FileChange
    }
}
