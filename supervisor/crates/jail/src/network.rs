//! Where a program may connect to.

use std::ffi::OsString;
use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

/// The most [`LoopbackListeners`] of one program. 64: their sockets are passed one a packet before the program
/// runs, and all of them fit into the buffer of the control socket. A longer list is refused.
pub(crate) const LISTENERS_MAX: usize = 64;

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

/// TCP sockets that listen on a program's own loopback interface, and that the supervisor serves from outside:
/// a socket stays in the network namespace that it was made in. They need [`Network::Loopback`].
///
/// The program gets all of them or none. Where it gets none, it has no network at all, and the report says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopbackListeners {
    /// Where they listen, in the order in which the supervisor gets them. Addresses outside of `127.0.0.0/8` become
    /// addresses of the loopback interface.
    pub addresses: Vec<SocketAddrV4>,
    /// Variables that are added to the environment if the sockets were made.
    pub env: Vec<(OsString, OsString)>,
}

impl Network {
    /// Whether TCP is limited to ports. Then there is no UDP, which cannot be limited.
    pub(crate) fn lists_ports(&self) -> bool {
        matches!(self, Self::Host { connect: Some(_), .. } | Self::Host { bind: Some(_), .. })
    }
}
