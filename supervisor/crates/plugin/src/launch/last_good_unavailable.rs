//! Why the last good program cannot be started again.

use std::fmt;

/// Why the last good program cannot be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastGoodUnavailable {
    /// It was started by its path and could not be kept.
    ByPath,
    /// Its file has other content now.
    Overwritten,
    /// Its copy was changed, or the plugin's gid is different now.
    CopyChanged,
    /// It could not be copied.
    CopyFailed,
}

impl LastGoodUnavailable {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::ByPath => "it is the system's and was started by its path, so that it could not be kept",
            Self::Overwritten => {
                "its file was written over in place (a new one is to be put beside it and renamed)"
            }
            Self::CopyChanged => "its copy in the data directory was changed",
            Self::CopyFailed => "it cannot be copied into the data directory (the supervisor's log says why)",
        }
    }
}

impl fmt::Display for LastGoodUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}
