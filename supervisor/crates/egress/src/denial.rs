//! Why a plugin may not reach a target.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use talon_sanitize::{SafeDisplay, Sanitized};

/// Why a plugin did not reach a target. The text names the entry that would allow it, or what to check.
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
        /// Where it leads: all of its addresses.
        addresses: Vec<SocketAddr>,
    },
    /// A target that is allowed could not be reached, on a connection that has no answer to say so in.
    Unreachable {
        /// A sentence that names the target.
        reason: Sanitized,
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
            Self::NotPublic { place, addresses } => {
                let ips: Vec<_> = addresses.iter().map(|address| address.ip().to_string()).collect();
                let entries: String = addresses.iter().map(|address| format!(", \"{address}\"")).collect();
                write!(
                    f,
                    "{place} leads to {}, no public address (if that is meant, add where it leads beside it: \
                     sandbox.allow: [\"{place}\"{entries}])",
                    ips.join(" and "),
                )
            }
            Self::Unreachable { reason } => write!(f, "{reason}"),
        }
    }
}

/// Safe to show: it holds what was asked for only as [`Sanitized`].
impl SafeDisplay for Denial {}
