//! How the process ends, as its starter sees it.

use std::process::ExitCode;

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As it was asked to.
    Asked,
    /// What it needs cannot be had: its database was not opened, or the system lacks something.
    Refused,
    /// The starter does not speak our language.
    Protocol,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        match end {
            End::Asked => Self::SUCCESS,
            End::Refused => Self::FAILURE,
            // EX_SOFTWARE of sysexits.h: one of two programs of ours is wrong.
            End::Protocol => Self::from(70),
        }
    }
}
