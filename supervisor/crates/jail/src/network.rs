//! Where a program may connect to.

use serde::{Deserialize, Serialize};

/// Since which Landlock version TCP ports can be restricted.
pub(crate) const PORTS_LANDLOCK_ABI: u32 = 4;

/// Where a program may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Nothing: an empty network namespace.
    None,
    /// Only itself: a network namespace with only the loopback interface up.
    Loopback,
    /// Whatever the host can, except where ports are named: then TCP to and from these only, and no UDP.
    Host {
        /// TCP ports that it may connect to; `None` is any. Needs Landlock ABI 4 (Linux 6.7).
        connect: Option<Vec<u16>>,
        /// TCP ports that it may listen on; `None` is any. Needs Landlock ABI 4 (Linux 6.7).
        bind: Option<Vec<u16>>,
    },
}

impl Network {
    /// Whether TCP is limited to ports. Then there is no UDP, which cannot be limited.
    pub(crate) fn lists_ports(&self) -> bool {
        matches!(self, Self::Host { connect: Some(_), .. } | Self::Host { bind: Some(_), .. })
    }
}
