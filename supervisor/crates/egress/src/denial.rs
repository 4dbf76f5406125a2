//! Why a plugin may not reach a target.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use talon_sanitize::{SafeDisplay, Sanitized};

/// A request for a target that the plugin may not reach. The text names the entry that would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// No entry of the list allows the target.
    NotListed {
        /// `host:port`, checked and bounded.
        place: Sanitized,
    },
    /// The name is allowed but resolves to this machine or the network around it.
    NotPublic {
        /// `host:port`, checked and bounded.
        place: Sanitized,
        /// Where it leads.
        address: SocketAddr,
    },
}

/// Called for each denial, from within the proxy's task. It must not block, and it must limit its own log
/// rate: up to [`MAX_CONNECTIONS`](crate::MAX_CONNECTIONS) denials come every tenth of a second.
pub type OnDenied = Arc<dyn Fn(&Denial) + Send + Sync>;

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListed { place } => write!(
                f,
                "{place} is not on this plugin's allow-list (if it should be, add it: sandbox.allow: [\"{place}\"])"
            ),
            Self::NotPublic { place, address } => write!(
                f,
                "{place} leads to {}, which is no public address (if that is meant, add the address itself: \
                 sandbox.allow: [\"{address}\"])",
                address.ip()
            ),
        }
    }
}

/// Safe to show: it holds what was asked for only as [`Sanitized`].
impl SafeDisplay for Denial {}
