//! The user that a program runs as.

use serde::{Deserialize, Serialize};

/// A uid and gid for the program alone, without supplementary groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Never 0.
    pub uid: u32,
    /// Never 0.
    pub gid: u32,
}
