//! Why cgroups cannot be used, made or cleared.

use std::io;
use std::path::PathBuf;

/// The longest label or name. A file name has room for 255 bytes; a quarter of that is enough.
pub(super) const NAME_MAX_BYTES: usize = 64;

/// Why no cgroups can be used, and how to change that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why} ({fix})")]
pub struct CgroupsUnavailableError {
    why: String,
    fix: String,
}

impl CgroupsUnavailableError {
    /// The reason, and how to fix it.
    pub(crate) fn reason_and_fix(&self) -> (&str, &str) {
        (&self.why, &self.fix)
    }

    pub(super) fn new(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { why: why.into(), fix: fix.into() }
    }
}

/// Why a cgroup could not be made or cleared.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The name is not valid for a cgroup.
    #[error(
        "{0:?} cannot name a cgroup (use 1 to {NAME_MAX_BYTES} ASCII letters, digits, '-', '_', '@' and '+')"
    )]
    Name(String),
    /// A cgroup of this name has processes in it.
    #[error("the cgroup {} is in use (stop what runs in it)", .0.display())]
    InUse(PathBuf),
    /// The process is not in this cgroup.
    #[error("process {pid} is not in the cgroup {} (start the plugin again)", path.display())]
    NotMember {
        /// The cgroup's directory.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// Its directory could not be created or read.
    #[error("cannot make or read the cgroup {}: {source} (is it still delegated? see cgroup.max.descendants above it)", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A limit could not be set.
    #[error("cannot set {} to {value}: {source} (correct the plugin's limits)", file.display())]
    Limit {
        /// The file that holds it.
        file: PathBuf,
        /// The value.
        value: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}
