//! How a log is kept.

use std::path::PathBuf;
use std::time::Duration;

/// How a log is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory; created with mode 0700 if it is missing.
    pub dir: PathBuf,
    /// The size at which a file is closed; the last record may exceed it.
    pub file_bytes: u64,
    /// How many closed files are kept; 0 keeps all.
    pub files: u32,
    /// How long a call may wait for its record to be written.
    pub wait: Duration,
    /// The version of the program that writes.
    pub version: String,
}
