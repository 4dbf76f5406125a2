//! The exit of the process, as the supervisor sees it.

use std::process::ExitCode;

/// Why the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// It was asked to.
    Requested,
    /// Something it needs is not available: its database was not opened, or the system lacks something.
    Refused,
    /// The supervisor violated the protocol.
    ProtocolError,
}

impl From<ExitReason> for ExitCode {
    fn from(end: ExitReason) -> Self {
        match end {
            ExitReason::Requested => Self::SUCCESS,
            ExitReason::Refused => Self::FAILURE,
            // EX_SOFTWARE of sysexits.h: one of our two programs has a bug.
            ExitReason::ProtocolError => Self::from(70),
        }
    }
}
