//! The exit of the process, as the supervisor sees it.

use std::process::ExitCode;

/// Why the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Asked,
    /// Something it needs is not available: its database was not opened, or the system lacks something.
    Refused,
    /// The supervisor violated the protocol.
    Protocol,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        match end {
            End::Asked => Self::SUCCESS,
            End::Refused => Self::FAILURE,
            // EX_SOFTWARE of sysexits.h: one of our two programs has a bug.
            End::Protocol => Self::from(70),
        }
    }
}
